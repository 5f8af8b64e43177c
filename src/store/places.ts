import { SwitchboardError } from '../errors.ts';
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
 * A name stands for one thing: a group may be called like one of its own servers, but like no other. Looks at all servers
 * of the project as this transaction leaves them, and complains only about what it made of those that it `touched`.
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
  const named = servers.flatMap(({ settings }) =>
    typeof settings.group === 'string' ? [settings.group] : [],
  );
  const groups = new Map<string, unknown>([
    ...servers.map(({ name, settings }) => [name, settings.group] as const),
    // A hosted server is in no group.
    ...(await hostedAmong(changes, projectId, named)).map((name) => [name, undefined] as const),
  ]);
  const isTouched = new Set(touched);
  for (const [name, group] of groups) {
    if (typeof group !== 'string' || !groups.has(group) || groups.get(group) === group) continue;
    if (!isTouched.has(name) && !isTouched.has(group)) continue;
    throw new SwitchboardError(
      'conflict',
      `The group ${JSON.stringify(group)} of server "${name}" has the name of a server that is not in it: rename one of them, or put that server into the group too.`,
      { data: { names: [name, group] } },
    );
  }
}
