import fc from 'fast-check';
import { expect, it } from 'vitest';
import { instructionsOf, sharesOf } from './greeting.ts';
import type { Scope } from './scope.ts';

function greet(texts: readonly (string | undefined)[], maxInstructionsBytes: number): string {
  const servers = texts.map((instructions, index) => ({ name: `s${index}`, instructions }));
  const scope = {
    servers: () => servers,
    qualifierOf: ({ name }: { name: string }) => name,
    maxInstructionsBytes,
  } as unknown as Scope;
  return instructionsOf(scope).instructions ?? '';
}

it('instructions are joined unchanged if they fit', () => {
  expect(greet(['First.', undefined, 'Third.', ''], 8_192)).toBe('## s0\nFirst.\n\n## s2\nThird.');
  expect(greet([undefined], 8_192)).toBe('');
});

it('long instructions of one server leave space for the others', () => {
  const text = greet(['a'.repeat(100_000), 'Short.', 'ü'.repeat(100_000)], 1_000);
  expect(text).toContain('## s1\nShort.\n');
  expect(text.match(/ …/g)).toHaveLength(2);
  expect(text).not.toContain('\ufffd');
  const [first, , third] = text.split('\n\n');
  expect(Buffer.byteLength(first!)).toBeGreaterThan(450);
  expect(Buffer.byteLength(third!)).toBeGreaterThan(450);
});

it('instructions stay within the limit for any number of servers', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => `Server ${index} `.repeat(index % 50));
  expect(Buffer.byteLength(greet(many, 8_192))).toBeLessThanOrEqual(8_192);
  const long = ['Short.', 'I'.repeat(100_000), 'é'.repeat(50_000), 'x'.repeat(9_000)];
  for (const room of [500, 999, 8_192])
    expect(Buffer.byteLength(greet(long, room))).toBeLessThanOrEqual(room);
});

it('the space is shared: no server gets more than it needs, and none is wasted', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(10_000), { minLength: 1 }), fc.nat(50_000), (lengths, room) => {
      const shares = sharesOf(lengths, room);
      const total = shares.reduce((sum, share) => sum + share, 0);
      for (const [index, share] of shares.entries()) expect(share).toBeLessThanOrEqual(lengths[index]!);
      expect(total).toBeLessThanOrEqual(room);
      const isShort = shares.some((share, index) => share < lengths[index]!);
      if (isShort) expect(room - total).toBeLessThan(lengths.length);
    }),
  );
});
