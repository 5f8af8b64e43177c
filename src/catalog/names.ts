import { createHash } from 'node:crypto';
import { NamePrefixes, type Qualified } from './name-prefixes.ts';

type NamingMode = 'on-conflict' | 'always' | 'last-wins';

export interface NamingRules {
  mode: NamingMode;
  /** Between a server's prefix and a name. */
  separator: string;
  /** Which names are listed unchanged: those that all model APIs accept, or also those with dots and colons. */
  names?: Names;
}

export type Names = 'model-safe' | 'as-is';

/** A tool or prompt of a server. */
export interface Named extends Qualified {
  name: string;
  /** Another route to a listed item, which needs only a qualified name. */
  isAlias: boolean;
}

export interface PublicName {
  /** The name in lists; undefined if a later item of the same name hides it (`last-wins`). */
  listed: string | undefined;
  /** Can be called in every mode. */
  qualified: string;
  /** With unchanged names, the name that it would otherwise be listed as, unless another item has it. */
  fitted: string | undefined;
}

/** The limit of model APIs. */
const MAX_LENGTH = 64;
const HASH_LENGTH = 8;

/**
 * Assigns public names to items, whose pairs of server and name must be unique. All assigned names differ (except the
 * two of one item), match `[A-Za-z0-9_-]{1,64}` (with `as-is` also dots and colons), and depend only on the set of
 * items and prefixes, not on their order (except with `last-wins`). A name with the prefix of another server is never
 * listed unchanged: it would look like that server's, and could become that server's later.
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

/** Includes servers that offer nothing yet. */
export function namePrefixesOf(all: Iterable<Qualified>, separator: string): NamePrefixes {
  // Long names are cut to this length.
  const asPublic = (prefix: string) => cleaned(prefix).slice(0, MAX_LENGTH - HASH_LENGTH - 1);
  return new NamePrefixes(all, separator, asPublic);
}

/** The names that items would have if names were not listed unchanged. */
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

/** Whether all model APIs accept the name. */
export function isModelSafe(name: string): boolean {
  return modelSafe.test(name);
}

/** Whether Gemini and most MCP clients accept the name. */
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
 * A name that several items claim goes to none of them; each then claims its next one, with a hash. So the result does
 * not depend on the order, and no item can take another's name by claiming it.
 */
function qualifiedNames(items: readonly Named[], separator: string): string[] {
  const wanted = items.map(({ prefix, name }) => fitted(prefix + separator + name));
  const names = [...wanted];
  const holders = new Map<string, number | 'contested'>();
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
    holders.set(names[index]!, 'contested');
    if (holder !== 'contested') seekAgain(holder);
    seekAgain(index);
  }
  return names;
}

/** The claimants of each name, usually one. */
type Owners = Map<string, number | number[]>;

function claim(owners: Owners, name: string, index: number): void {
  const present = owners.get(name);
  if (present === undefined) owners.set(name, index);
  else if (typeof present !== 'number') present.push(index);
  else if (present !== index) owners.set(name, [present, index]);
}

/** Replaces characters that model APIs reject; shortens long names, with a hash of the whole name. */
function fitted(name: string): string {
  const clean = cleaned(name);
  if (clean.length > MAX_LENGTH) return withHash(clean, name);
  return clean === '' ? withHash('_', name) : clean;
}

function cleaned(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_');
}

function withHash(name: string, whole: string): string {
  // UTF-8 encodes all lone surrogates alike, so names that differ only in those would have the same hash.
  const input = whole.isWellFormed() ? whole : JSON.stringify(whole);
  const hash = createHash('sha256').update(input).digest('hex').slice(0, HASH_LENGTH);
  return `${name.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}_${hash}`;
}
