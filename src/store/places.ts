import { SwitchboardError } from '../errors.ts';
import type { Changes } from './database.ts';

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
  const groups = new Map(servers.map(({ name, settings }) => [name, settings.group]));
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
