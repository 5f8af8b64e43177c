import { describeClash, type NameClash, type NamedServer, nameClashes } from '../config/server-names.ts';
import { SwitchboardError } from '../errors.ts';
import type { Changes } from './database.ts';

/** The names that belong to hosted servers of the project. */
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
 * Rejects name clashes between the project's servers that involve a `touched` one, as this transaction leaves them. Callers
 * must hold the lock on the project's row, so that concurrent changes cannot clash.
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
  // Hosted servers have no group and no prefix.
  const hosted = (await hostedAmong(changes, projectId, wanted)).map((name) => ({ name }));
  const isTouched = new Set(touched);
  const clash = nameClashes([...named, ...hosted]).find(
    ({ server, other }) => isTouched.has(server) || isTouched.has(other),
  );
  if (clash !== undefined) throw clashError(clash);
}

function clashError(clash: NameClash): SwitchboardError {
  const { server, key, other } = clash;
  const message = `The server "${server}" cannot have this ${key}: ${describeClash(clash)}.`;
  return new SwitchboardError('conflict', message, { data: { names: [server, other] } });
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
