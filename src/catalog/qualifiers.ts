import type { Contribution } from './contribution.ts';

/** A server or a group, and what stands in front of its qualified names. */
export interface Qualified {
  server: string;
  prefix: string;
}

/** What qualified names begin with, and whose they are: a name that begins so can only be its owner's. */
export class Qualifiers {
  private readonly owners = new Map<string, Set<string>>();
  private readonly lengths: readonly number[];

  /** Of each prefix and the separator as they are, and as `asPublic` makes them the beginning of a public name. */
  constructor(all: Iterable<Qualified>, separator: string, asPublic: (qualifier: string) => string) {
    for (const { server, prefix } of all) {
      const qualifier = prefix + separator;
      for (const spelling of new Set([qualifier, asPublic(qualifier)])) this.add(spelling, server);
    }
    this.lengths = [...new Set([...this.owners.keys()].map(({ length }) => length))];
  }

  /** Whether a name begins like the qualified names of another than this server. */
  areOfOther(name: string, server: string): boolean {
    for (const length of this.lengths) {
      const owners = length > name.length ? undefined : this.owners.get(name.slice(0, length));
      if (owners !== undefined && (owners.size > 1 || !owners.has(server))) return true;
    }
    return false;
  }

  private add(qualifier: string, server: string): void {
    if (qualifier === '') return;
    const owners = this.owners.get(qualifier);
    if (owners === undefined) this.owners.set(qualifier, new Set([server]));
    else owners.add(server);
  }
}

/** Whoever has qualified names: the group, and its servers that are called otherwise. */
export function qualifiedOf({ place, group, prefix, servers }: Contribution): Qualified[] {
  const others = servers.filter(({ server }) => server !== group);
  return [{ server: place, prefix }, ...others.map((one) => ({ server: one.place, prefix: one.prefix }))];
}
