import { createHash } from 'node:crypto';
import { NamePrefixes, type Qualified } from './name-prefixes.ts';

type NamingMode = 'on-conflict' | 'always' | 'last-wins';

export interface NamingRules {
  mode: NamingMode;
  /** Stands between a server's prefix and a name. */
  separator: string;
  /** What a name may be to stay as it is: what all APIs of models take, or dots and colons too. */
  names?: Names;
}

export type Names = 'model-safe' | 'as-is';

/** Something with a name on a server: a tool or a prompt. */
export interface Named extends Qualified {
  name: string;
  /** Another way to something that is listed already: it only needs a qualified name. */
  isAlias: boolean;
}

export interface PublicName {
  /** Under this name it is listed; undefined where a later one of the same name hides it (`last-wins`). */
  listed: string | undefined;
  /** Under this name it can be called in every mode. */
  qualified: string;
  /** Under this name too, where names stay as they are: what it would be listed as otherwise, if that is nobody else's. */
  fitted: string | undefined;
}

/** What model APIs take. */
const MAX_LENGTH = 64;
const HASH_LENGTH = 8;

/**
 * Gives everything a public name; no two items have both the same server and the same name. All names given, listed and qualified, are different (but for an item's own two),
 * fit `[A-Za-z0-9_-]{1,64}` (or, where they stay as they are, have dots and colons too), and depend on the set of items and the namePrefixes alone, not on their
 * order (but for `last-wins`). What begins like the qualified names of another server is never listed as it is: whoever sees it would take it for that one's,
 * and once that one brings the same name, it would be.
 */
export function publicNames(
  items: readonly Named[],
  rules: NamingRules,
  namePrefixes = namePrefixesOf(items, rules.separator),
): PublicName[] {
  const qualified = qualifiedNames(items, rules.separator);
  const staysAsIs = rules.names === 'as-is' ? isAcceptedByMany : () => false;
  const plain = items.map(({ name, server }, index) => {
    const own = staysAsIs(name) ? name : fitted(name);
    return namePrefixes.areOfOther(own, server) ? qualified[index]! : own;
  });
  const owners: Owners = new Map();
  items.forEach(({ isAlias }, index) => {
    if (!isAlias) claim(owners, plain[index]!, index);
    claim(owners, qualified[index]!, index);
  });
  const others = otherNames(items, plain, namePrefixes);
  return items.map(({ isAlias }, index) => ({
    qualified: qualified[index]!,
    listed: isAlias ? undefined : listedName(index, plain, qualified, owners, rules.mode),
    fitted: otherNameOf(index, others, owners),
  }));
}

/** What the qualified names of these begin with; those that have nothing yet belong here too. */
export function namePrefixesOf(all: Iterable<Qualified>, separator: string): NamePrefixes {
  // Of a name that is too long only so much is left.
  const asPublic = (prefix: string) => cleaned(prefix).slice(0, MAX_LENGTH - HASH_LENGTH - 1);
  return new NamePrefixes(all, separator, asPublic);
}

/** Who would have which name, if names did not stay as they are. */
function otherNames(
  items: readonly Named[],
  plain: readonly string[],
  namePrefixes: NamePrefixes,
): { names: string[]; owners: Owners } {
  const owners: Owners = new Map();
  const names = items.map(({ name, server, isAlias }, index) => {
    const other = isModelSafe(plain[index]!) ? plain[index]! : fitted(name);
    const isNew = !isAlias && other !== plain[index];
    if (isNew && !namePrefixes.areOfOther(other, server)) claim(owners, other, index);
    return other;
  });
  return { names, owners };
}

function otherNameOf(
  index: number,
  { names, owners: others }: ReturnType<typeof otherNames>,
  owners: Owners,
): string | undefined {
  const name = names[index]!;
  return others.get(name) === index && !owners.has(name) ? name : undefined;
}

const modelSafe = /^[A-Za-z0-9_-]{1,64}$/;
const accepted = /^[A-Za-z0-9_.:-]{1,64}$/;

/** Whether the APIs of all models take such a name. */
export function isModelSafe(name: string): boolean {
  return modelSafe.test(name);
}

/** Whether many do: Gemini's, and most clients of MCP. */
function isAcceptedByMany(name: string): boolean {
  return accepted.test(name);
}

function listedName(
  index: number,
  plain: string[],
  qualified: string[],
  owners: Owners,
  mode: NamingMode,
): string | undefined {
  const name = plain[index]!;
  if (mode === 'always') return qualified[index]!;
  const owner = owners.get(name)!;
  if (owner === index) return name;
  if (mode === 'on-conflict') return qualified[index]!;
  const others = [owner].flat().filter((other) => other !== index);
  if (others.some((other) => qualified[other] === name)) return qualified[index]!;
  return others.every((other) => other < index) ? name : undefined;
}

/**
 * A name that several items want goes to none of them: each tries its next one, with a hash. So the order of the
 * items does not matter, and no item can take another's name by wanting it as well.
 */
function qualifiedNames(items: readonly Named[], separator: string): string[] {
  const wanted = items.map(({ prefix, name }) => fitted(prefix + separator + name));
  const names = [...wanted];
  const holders = new Map<string, number | 'nobody'>();
  const attempts = new Array<number>(items.length).fill(0);
  const seeking = items.map((_, index) => index);
  const seekAgain = (index: number): void => {
    const { server, name } = items[index]!;
    const attempt = ++attempts[index]!;
    names[index] = withHash(wanted[index]!, `${server}\0${name}${attempt === 1 ? '' : `\0${attempt}`}`);
    seeking.push(index);
  };
  for (let index = seeking.pop(); index !== undefined; index = seeking.pop()) {
    const holder = holders.get(names[index]!);
    if (holder === undefined) {
      holders.set(names[index]!, index);
      continue;
    }
    holders.set(names[index]!, 'nobody');
    if (holder !== 'nobody') seekAgain(holder);
    seekAgain(index);
  }
  return names;
}

/** Who wants a name. Nearly every name has one owner. */
type Owners = Map<string, number | number[]>;

function claim(owners: Owners, name: string, index: number): void {
  const present = owners.get(name);
  if (present === undefined) owners.set(name, index);
  else if (typeof present !== 'number') present.push(index);
  else if (present !== index) owners.set(name, [present, index]);
}

/** The name with the characters that model APIs take; cut and marked with a hash of the whole where it is too long. */
function fitted(name: string): string {
  const clean = cleaned(name);
  if (clean.length > MAX_LENGTH) return withHash(clean, name);
  return clean === '' ? withHash('_', name) : clean;
}

function cleaned(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_');
}

function withHash(name: string, whole: string): string {
  // In UTF-8 all halves of characters are the same; names that differ only in those would have the same hash for ever.
  const told = whole.isWellFormed() ? whole : JSON.stringify(whole);
  const hash = createHash('sha256').update(told).digest('hex').slice(0, HASH_LENGTH);
  return `${name.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}_${hash}`;
}
