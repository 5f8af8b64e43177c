import { Random } from '../../soak/random.ts';

/** The random numbers of one case, which depend only on the seed and the index. */
export function caseRandom(seed: number, index: number, salt = 0): Random {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ Math.imul(salt, 0x27d4eb2f), 0x2c1b3c6d);
  return new Random(mixed ^ (mixed >>> 13));
}

type Weighted<Item> = readonly (readonly [weight: number, item: Item])[];

/** A random item; twice the weight makes it twice as frequent. */
export function weighted<Item>(random: Random, items: Weighted<Item>): Item {
  let left = random.fraction() * items.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, item] of items) {
    left -= weight;
    if (left < 0) return item;
  }
  return items[0]![1];
}

export function someBytes(random: Random, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let at = 0; at < length; at++) bytes[at] = random.below(256);
  return bytes;
}

/** Text that other clients must never see; the index identifies its case. */
export function canaryOf(index: number): string {
  return `canary-${index}-${markOf(index)}.`;
}

/** The indexes of all canaries in a text. */
export function canariesIn(text: string): number[] {
  return [...text.matchAll(/canary-(\d+)-([\da-z]+)\./g)]
    .filter(([, index, mark]) => mark === markOf(Number(index)))
    .map(([, index]) => Number(index));
}

/** A checksum, so that cutting and joining a canary does not produce that of another case. */
function markOf(index: number): string {
  return (Math.imul(index + 1, 2_654_435_761) >>> 0).toString(36);
}
