import { SwitchboardError } from '../errors.ts';
import { describeOwner, type NameClash, type NamedServer, nameClashes } from '../server-names.ts';
import type { Changes } from './database.ts';

/** Those of the names that hosted servers of the project have. */
export async function hostedAmong(
  changes: Changes,
  projectId: string,
  names: readonly string[],
): Promise<string[]> {
  if (names.length === 0) return [];
  const hosted = await changes
    .selectFrom('agent_workspaces')
    .select('name')
    .where('project_id', '=', projectId)
    .where('name', 'in', names)
    .orderBy('name')
    .execute();
  return hosted.map(({ name }) => name);
}

/**
 * No name may stand for two servers. Looks at all servers of the project as this transaction leaves them, and complains
 * only about what it made of those that it `touched`.
 * Whoever calls holds the project's row, so that no two changes that clash can pass each other.
 */
export async function checkPlaces(
  changes: Changes,
  projectId: string,
  touched: readonly string[],
): Promise<void> {
  if (touched.length === 0) return;
  const servers = await changes
    .selectFrom('project_mcp_servers')
    .select(['name', 'settings'])
    .where('project_id', '=', projectId)
    .orderBy('name')
    .execute();
  const named: NamedServer[] = servers.map(({ name, settings }) => ({
    name,
    group: textOrNone(settings.group),
    prefix: textOrNone(settings.prefix),
  }));
  const wanted = named.flatMap(({ group, prefix }) => [group, prefix]).filter((name) => name !== undefined);
  // A hosted server is in no group, and has no prefix.
  const hosted = (await hostedAmong(changes, projectId, wanted)).map((name) => ({ name }));
  const isTouched = new Set(touched);
  const clash = nameClashes([...named, ...hosted]).find(
    ({ server, other }) => isTouched.has(server) || isTouched.has(other),
  );
  if (clash !== undefined) throw clashError(clash);
}

function clashError(clash: NameClash): SwitchboardError {
  const { server, key, value, other } = clash;
  const shown = JSON.stringify(value);
  const message =
    key === 'group'
      ? `The group ${shown} of server "${server}" has the name of a server that is not in it: rename one of them, or put that server into the group too.`
      : `The prefix ${shown} of server "${server}" is ${describeOwner(clash)}, so nobody could tell whose tools begin with it: choose another prefix.`;
  return new SwitchboardError('conflict', message, { data: { names: [server, other] } });
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
