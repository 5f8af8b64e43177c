import type { Scope } from './scope.ts';

/** Less than that says nothing. */
const LEAST_BYTES = 100;
const CUT = ' …';
const BETWEEN = '\n\n';

/** What servers tell models of themselves, one after the other, each within its share. */
export function instructionsOf(scope: Scope): { instructions?: string } {
  const all = scope.servers().flatMap((server) => {
    const { instructions = '' } = server;
    return instructions === '' ? [] : [`## ${scope.placeOf(server)}\n${instructions}`];
  });
  const told = all.slice(0, Math.floor(scope.maxInstructionsBytes / LEAST_BYTES));
  const shares = sharesOf(
    told.map((text) => Buffer.byteLength(text)),
    scope.maxInstructionsBytes - BETWEEN.length * Math.max(0, told.length - 1),
  );
  const instructions = told.map((text, index) => cut(text, shares[index]!)).join(BETWEEN);
  return instructions === '' ? {} : { instructions };
}

/** How much of the room each of them gets: what the short ones leave goes to the long ones. */
export function sharesOf(lengths: readonly number[], room: number): number[] {
  const shares = [...lengths];
  let left = room;
  const shortestFirst = lengths
    .map((_, index) => index)
    .sort((one, other) => lengths[one]! - lengths[other]!);
  shortestFirst.forEach((index, done) => {
    shares[index] = Math.min(lengths[index]!, Math.floor(left / (lengths.length - done)));
    left -= shares[index]!;
  });
  return shares;
}

function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes - Buffer.byteLength(CUT);
  // Not within a character.
  while ((bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end) + CUT;
}
