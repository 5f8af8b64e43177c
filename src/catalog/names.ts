import { createHash } from 'node:crypto';

export type NamingMode = 'on-conflict' | 'always' | 'last-wins';

export interface NamingRules {
  mode: NamingMode;
  /** Stands between a server's prefix and a name. */
  separator: string;
}

/** Something with a name on a server: a tool or a prompt. */
export interface Named {
  server: string;
  /** What stands in front of a qualified name: the server's name, unless configured otherwise. */
  prefix: string;
  name: string;
}

export interface PublicName {
  /** Under this name it is listed; undefined where a later one of the same name hides it (`last-wins`). */
  listed: string | undefined;
  /** Under this name it can be called in every mode. */
  qualified: string;
}

/** What model APIs take. */
const MAX_LENGTH = 64;
const HASH_LENGTH = 8;

/**
 * Gives everything a public name. All names given, listed and qualified, are different (but for an item's own two),
 * fit `[A-Za-z0-9_-]{1,64}`, and depend on the set of items alone, not on their order (but for `last-wins`).
 */
export function publicNames(items: readonly Named[], rules: NamingRules): PublicName[] {
  const qualified = qualifiedNames(items, rules.separator);
  const plain = items.map(({ name }) => fitted(name));
  const owners = new Map<string, Set<number>>();
  items.forEach((_, index) => {
    claim(owners, plain[index]!, index);
    claim(owners, qualified[index]!, index);
  });
  return items.map((_, index) => ({
    qualified: qualified[index]!,
    listed: listedName(index, plain, qualified, owners, rules.mode),
  }));
}

function listedName(
  index: number,
  plain: string[],
  qualified: string[],
  owners: Map<string, Set<number>>,
  mode: NamingMode,
): string | undefined {
  const name = plain[index]!;
  if (mode === 'always') return qualified[index]!;
  const others = [...owners.get(name)!].filter((other) => other !== index);
  if (others.length === 0) return name;
  const clashesWithQualified = others.some((other) => qualified[other] === name);
  if (mode === 'on-conflict' || clashesWithQualified) return qualified[index]!;
  return others.every((other) => other < index) ? name : undefined;
}

function qualifiedNames(items: readonly Named[], separator: string): string[] {
  const wanted = items.map(({ prefix, name }) => fitted(prefix + separator + name));
  const count = new Map<string, number>();
  for (const name of wanted) count.set(name, (count.get(name) ?? 0) + 1);
  return wanted.map((name, index) => {
    if (count.get(name) === 1) return name;
    const { server, name: own } = items[index]!;
    return withHash(name, `${server}\0${own}`);
  });
}

function claim(owners: Map<string, Set<number>>, name: string, index: number): void {
  const present = owners.get(name);
  if (present === undefined) owners.set(name, new Set([index]));
  else present.add(index);
}

/** The name with the characters that model APIs take; cut and marked with a hash of the whole where it is too long. */
export function fitted(name: string): string {
  const clean = name.replace(/[^A-Za-z0-9_-]/g, '_');
  if (clean.length > MAX_LENGTH) return withHash(clean, name);
  return clean === '' ? withHash('_', name) : clean;
}

function withHash(name: string, whole: string): string {
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_LENGTH);
  return `${name.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}_${hash}`;
}
