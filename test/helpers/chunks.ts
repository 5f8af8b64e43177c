import fc from 'fast-check';

/** Cut after every n bytes, or at these positions. */
type Cuts = number | readonly number[];

export const anyCuts: fc.Arbitrary<Cuts> = fc.oneof(
  fc.integer({ min: 1, max: 12 }),
  fc.array(fc.nat(4_000), { maxLength: 12 }),
);

/** Includes empty pieces, which a stream may produce. */
export function cut(bytes: Buffer, cuts: Cuts): Buffer[] {
  const places =
    typeof cuts === 'number'
      ? Array.from({ length: Math.floor(bytes.length / cuts) }, (_, index) => (index + 1) * cuts)
      : cuts.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b);
  const pieces: Buffer[] = [];
  let start = 0;
  for (const end of [...places, bytes.length]) {
    pieces.push(bytes.subarray(start, end));
    start = end;
  }
  return pieces;
}
