import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCuts, cut } from '../../test/helpers/chunks.ts';
import { LineSplitter } from './lines.ts';

/** The output of a splitter: lines as text, and `null` for one that was too long. */
function split(pieces: readonly Buffer[], maxBytes: number, ends = true): (string | null)[] {
  const heard: (string | null)[] = [];
  const splitter = new LineSplitter(maxBytes, {
    line: (chunks) => heard.push(Buffer.concat(chunks).toString()),
    tooLong: () => heard.push(null),
  });
  for (const piece of pieces) splitter.push(piece);
  if (ends) splitter.end();
  return heard;
}

const lineTexts = fc.string({ unit: 'binary', maxLength: 40 }).map((text) => text.replace(/[\r\n]/g, '.'));
const breaks = fc.constantFrom('\n', '\r\n');
const noLimit = Number.POSITIVE_INFINITY;

describe('lines', () => {
  it('come out the same however the stream is split', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(lineTexts, breaks)), lineTexts, anyCuts, (lines, last, cuts) => {
        const stream = Buffer.from(lines.flat().join('') + last);
        const expected = [...lines.map(([line]) => line), last].filter((line) => line !== '');
        expect(split(cut(stream, cuts), noLimit)).toEqual(expected);
      }),
    );
  });

  it('are emitted as soon as they are complete, and not before', () => {
    const heard: string[] = [];
    const splitter = new LineSplitter(noLimit, {
      line: (chunks) => heard.push(Buffer.concat(chunks).toString()),
      tooLong: () => {},
    });
    splitter.push(Buffer.from('one\ntwo\nthr'));
    expect(heard).toEqual(['one', 'two']);
    splitter.push(Buffer.from('ee'));
    expect(heard).toEqual(['one', 'two']);
    splitter.push(Buffer.from('\n'));
    expect(heard).toEqual(['one', 'two', 'three']);
  });

  it('keep a carriage return that is not before the line break', () => {
    expect(split([Buffer.from('a\rb\r'), Buffer.from('\r\n\r\n\r')], noLimit)).toEqual(['a\rb\r']);
  });

  it('that are too long are skipped with one notice each, and the next ones follow', () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 12 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 1, max: 30 }), anyCuts, (list, maxBytes, cuts) => {
        const lines = list.map((length, index) => String.fromCharCode(0x61 + index).repeat(length));
        const expected = lines.map((line) => (line.length > maxBytes ? null : line));
        const stream = Buffer.from(lines.map((line) => `${line}\n`).join(''));
        expect(split(cut(stream, cuts), maxBytes, false)).toEqual(expected);
      }),
    );
  });

  it('that are too long are identified by their beginning, before they end', () => {
    const heads: string[] = [];
    const splitter = new LineSplitter(6, {
      line: () => {},
      tooLong: (head) => heads.push(head.toString()),
    });
    for (const piece of ['begin', 'ning', ' and the', ' rest']) splitter.push(Buffer.from(piece));
    expect(heads).toEqual(['beginning']);
  });

  it('that are too long give their beginning and end once complete', () => {
    const edges: string[] = [];
    const splitter = (maxBytes: number) =>
      new LineSplitter(maxBytes, {
        line: () => {},
        tooLong: () => {},
        skipped: (head, tail) => edges.push(`${head} … ${tail}`),
      });
    fc.assert(
      fc.property(
        fc.string({ minLength: 300, maxLength: 900, unit: 'grapheme-ascii' }),
        anyCuts,
        (line, cuts) => {
          edges.length = 0;
          const lines = splitter(280);
          for (const piece of cut(Buffer.from(`${line}\nnext\n`), cuts)) lines.push(piece);
          expect(edges).toEqual([`${line.slice(0, 256)} … ${line.slice(-256)}`]);
        },
      ),
    );
  });

  it('that are too long leave no rest when the stream ends', () => {
    expect(split([Buffer.from('much too long')], 4)).toEqual([null]);
  });
});
