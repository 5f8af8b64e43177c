import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { turnsDuring } from '../../test/helpers/turns.ts';
import { splice, spliceChunks, spliceMany } from './splice.ts';

/** Kept and replaced stretches of text, alternating. */
const patchworks = fc.array(fc.record({ kept: fc.string(), replaced: fc.string(), by: fc.string() }), {
  maxLength: 6,
});

describe('splicing', () => {
  it('changes only the given spans, for any order of the edits', () => {
    fc.assert(
      fc.property(patchworks, fc.string(), fc.infiniteStream(fc.nat()), (patches, rest, order) => {
        let text = '';
        const edits = patches.map(({ kept, replaced, by }) => {
          const start = Buffer.byteLength(text + kept);
          text += kept + replaced;
          return { start, end: start + Buffer.byteLength(replaced), bytes: Buffer.from(by) };
        });
        // Two edits at the same position have no defined order.
        fc.pre(new Set(edits.map(({ start }) => start)).size === edits.length);
        const before = Buffer.from(text + rest);
        const shuffled = edits
          .map((edit) => ({ edit, rank: order.next().value as number }))
          .sort((a, b) => a.rank - b.rank)
          .map(({ edit }) => edit);
        const expected = patches.map(({ kept, by }) => kept + by).join('') + rest;
        expect(splice(before, shuffled).toString()).toBe(expected);
        expect(before.toString()).toBe(text + rest);
      }),
    );
  });

  it('splits a long message at the edits without copying it', () => {
    const bytes = Buffer.alloc(2 ** 20 + 10, 'x');
    const edits = [
      { start: 2 ** 20, end: 2 ** 20 + 4, bytes: Buffer.from('last') },
      { start: 0, end: 2, bytes: Buffer.from('first') },
      { start: 2, end: 2, bytes: Buffer.from('second') },
    ];
    const chunks = spliceChunks(bytes, edits);
    expect(Buffer.concat(chunks).equals(splice(bytes, edits))).toBe(true);
    expect(chunks.filter(({ buffer }) => buffer === bytes.buffer)).toHaveLength(2);
    expect(spliceChunks(bytes.subarray(0, 100), [])).toHaveLength(1);
  });

  it('accepts adjacent edits and insertions', () => {
    const edits = [
      { start: 3, end: 3, bytes: Buffer.from('!') },
      { start: 0, end: 1, bytes: Buffer.from('A') },
      { start: 1, end: 2, bytes: Buffer.from('') },
    ];
    expect(splice(Buffer.from('abc'), edits).toString()).toBe('Ac!');
  });

  it('gives the same result for very many edits, and yields to other work', async () => {
    const bytes = Buffer.from('ab'.repeat(50_000));
    const editAt = (index: number) => ({ start: 2 * index + 1, end: 2 * index + 1, bytes: Buffer.from('-') });
    const few = () => [
      { start: 99_999, end: 100_000, bytes: Buffer.from('end') },
      { start: 0, end: 1, bytes: Buffer.from('begin') },
      { start: 50_000, end: 50_001, bytes: Buffer.from('middle') },
    ];
    const count = 49_000;
    const splicing = spliceMany(bytes, few(), count, editAt);
    expect(await turnsDuring(splicing)).toBeGreaterThanOrEqual(9);
    const all = Array.from({ length: count }, (_, index) => editAt(index));
    expect(Buffer.concat(await splicing).equals(splice(bytes, [...few(), ...all]))).toBe(true);
    expect(Buffer.concat(await spliceMany(bytes, few(), 0, editAt)).equals(splice(bytes, few()))).toBe(true);
  });
});
