/** What a server is called: its own name, that of its group, and what stands in front of its tools. */
export interface NamedServer {
  name: string;
  group?: string | undefined;
  prefix?: string | undefined;
}

/** Two servers of one project for which one name would stand. */
export interface NameClash {
  /** The server whose `key` is the name. */
  server: string;
  key: 'group' | 'prefix';
  value: string;
  /** The server that has it already, and as what. */
  other: string;
  as: 'name' | 'group' | 'prefix';
}

/**
 * A name stands for one thing. A group may be called like one of its own servers, but like no other. A prefix may be the
 * server's own name, but no name, group or prefix of another: nobody could tell whose tool `prefix__tool` is.
 */
export function nameClashes(servers: readonly NamedServer[]): NameClash[] {
  const byName = new Map(servers.map((server) => [server.name, server]));
  const owners = ownersOf(servers);
  return servers.flatMap(({ name, group, prefix }) => {
    const clashes: NameClash[] = [];
    const namesake = group === undefined ? undefined : byName.get(group);
    if (group !== undefined && namesake !== undefined && namesake.group !== group) {
      clashes.push({ server: name, key: 'group', value: group, other: namesake.name, as: 'name' });
    }
    const taken =
      prefix === undefined ? undefined : owners.get(fitted(prefix))?.find((owner) => !isOwn(owner, name));
    if (prefix !== undefined && taken !== undefined) {
      clashes.push({ server: name, key: 'prefix', value: prefix, ...taken });
    }
    return clashes;
  });
}

/** As a part of a sentence: the name of server "crm". */
export function describeOwner({ other, as }: NameClash): string {
  return `the ${as} of server ${JSON.stringify(other)}`;
}

type Owner = Pick<NameClash, 'other' | 'as'>;

/** Who is called so, as it is seen in names of tools. */
function ownersOf(servers: readonly NamedServer[]): Map<string, Owner[]> {
  const owners = new Map<string, Owner[]>();
  for (const { name: other, group, prefix } of servers) {
    for (const [as, value] of Object.entries({ name: other, group, prefix }) as [Owner['as'], string?][]) {
      if (value === undefined) continue;
      const present = owners.get(fitted(value));
      if (present === undefined) owners.set(fitted(value), [{ other, as }]);
      else present.push({ other, as });
    }
  }
  return owners;
}

/** The group of a server stands for all of its servers, so it is not the server's own. */
function isOwn({ other, as }: Owner, server: string): boolean {
  return other === server && as !== 'group';
}

/** Other characters are not in the names of tools. */
function fitted(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_');
}
