import type { ServerEntry } from './entry.ts';
import type { Path, Problem } from './problems.ts';

export interface NamedServer {
  name: string;
  group?: string | undefined;
  prefix?: string | undefined;
}

/** Two servers of a project that use the same name. */
export interface NameClash {
  /** The server whose `key` clashes. */
  server: string;
  key: 'group' | 'prefix';
  value: string;
  /** The server that already uses the name, and as what. */
  other: string;
  as: 'name' | 'group' | 'prefix';
}

/**
 * A group may share the name of one of its own servers only, and a prefix that of its own server only: otherwise
 * `prefix__tool` would be ambiguous.
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

export function nameProblemsOf(entries: ReadonlyMap<string, ServerEntry>, path: Path): Problem[] {
  const servers = [...entries].map(([name, { group, prefix }]) => ({ name, group, prefix }));
  return nameClashes(servers).map((clash) => ({
    path: [...path, clash.server, clash.key],
    message: describeClash(clash),
  }));
}

/** Follows the group or the prefix in a message. */
export function describeClash({ key, value, other, as }: NameClash): string {
  const shown = JSON.stringify(value);
  return key === 'group'
    ? `${shown} is also the name of a server outside of the group: rename one of them, or add that server to the group`
    : `${shown} is also the ${as} of server ${JSON.stringify(other)}, so tool names would be ambiguous: choose another prefix`;
}

type Owner = Pick<NameClash, 'other' | 'as'>;

/** By the form that names have in tool names. */
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

/** A group's name belongs to all of its servers. */
function isOwn({ other, as }: Owner, server: string): boolean {
  return other === server && as !== 'group';
}

function toolNamePart(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_');
}
