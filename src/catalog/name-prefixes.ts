import type { Contribution } from './contribution.ts';

/** A server or group, and the prefix of its qualified names. */
export interface Qualified {
  server: string;
  prefix: string;
}

/** Reserves the prefixes of qualified names for their owners. */
export class NamePrefixes {
  private readonly owners = new Map<string, Set<string>>();
  private readonly lengths: readonly number[];

  /** Reserves each prefix with the separator, both as configured and as `asPublic` converts it. */
  constructor(all: Iterable<Qualified>, separator: string, asPublic: (prefix: string) => string) {
    for (const { server, prefix } of all) {
      const begin = prefix + separator;
      for (const spelling of new Set([begin, asPublic(begin)])) this.add(spelling, server);
    }
    this.lengths = [...new Set([...this.owners.keys()].map(({ length }) => length))];
  }

  /** Whether the name starts with a prefix of another server. */
  areOfOther(name: string, server: string): boolean {
    for (const length of this.lengths) {
      const owners = length > name.length ? undefined : this.owners.get(name.slice(0, length));
      if (owners !== undefined && (owners.size > 1 || !owners.has(server))) return true;
    }
    return false;
  }

  private add(begin: string, server: string): void {
    if (begin === '') return;
    const owners = this.owners.get(begin);
    if (owners === undefined) this.owners.set(begin, new Set([server]));
    else owners.add(server);
  }
}

/** The group, and those of its servers that have another name. */
export function qualifiedOf({ qualifier, group, prefix, servers }: Contribution): Qualified[] {
  const others = servers.filter(({ server }) => server !== group);
  return [
    { server: qualifier, prefix },
    ...others.map((one) => ({ server: one.qualifier, prefix: one.prefix })),
  ];
}
