import type { ServerEntry } from './entry.ts';
import type { Path, Problem } from './problems.ts';

/** A server's own name, its group's, and the prefix of its tools. */
export interface NamedServer {
  name: string;
  group?: string | undefined;
  prefix?: string | undefined;
}

/** Two servers of one project that share a name. */
export interface NameClash {
  /** The server whose `key` is the name. */
  server: string;
  key: 'group' | 'prefix';
  value: string;
  /** The server that uses the name already, and for what. */
  other: string;
  as: 'name' | 'group' | 'prefix';
}

/**
 * A group may have the name of one of its own servers, but of no other. A prefix may be the server's own name, but no name,
 * group or prefix of another: `prefix__tool` would be ambiguous.
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
      prefix === undefined
        ? undefined
        : owners.get(toolNamePart(prefix))?.find((owner) => !isOwn(owner, name));
    if (prefix !== undefined && taken !== undefined) {
      clashes.push({ server: name, key: 'prefix', value: prefix, ...taken });
    }
    return clashes;
  });
}

/** The name clashes of a file, at `path`. */
export function nameProblemsOf(entries: ReadonlyMap<string, ServerEntry>, path: Path): Problem[] {
  const servers = [...entries].map(([name, { group, prefix }]) => ({ name, group, prefix }));
  return nameClashes(servers).map((clash) => ({
    path: [...path, clash.server, clash.key],
    message: describeClash(clash),
  }));
}

/** What follows the group or the prefix in a message. */
export function describeClash({ key, value, other, as }: NameClash): string {
  const shown = JSON.stringify(value);
  return key === 'group'
    ? `${shown} is also the name of a server outside of the group: rename one of them, or add that server to the group`
    : `${shown} is also the ${as} of server ${JSON.stringify(other)}, so tool names would be ambiguous: choose another prefix`;
}

type Owner = Pick<NameClash, 'other' | 'as'>;

/** The servers that use each name, in the form that it has in tool names. */
function ownersOf(servers: readonly NamedServer[]): Map<string, Owner[]> {
  const owners = new Map<string, Owner[]>();
  for (const { name: other, group, prefix } of servers) {
    for (const [as, value] of Object.entries({ name: other, group, prefix }) as [Owner['as'], string?][]) {
      if (value === undefined) continue;
      const present = owners.get(toolNamePart(value));
      if (present === undefined) owners.set(toolNamePart(value), [{ other, as }]);
      else present.push({ other, as });
    }
  }
  return owners;
}

/** A group belongs to all of its servers, so its name is not the server's own. */
function isOwn({ other, as }: Owner, server: string): boolean {
  return other === server && as !== 'group';
}

function toolNamePart(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_');
}
