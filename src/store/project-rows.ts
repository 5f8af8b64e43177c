import type { Selectable } from 'kysely';
import { SwitchboardError } from '../errors.ts';
import type { Queries } from './database.ts';
import type { DB } from './schema.ts';
import { isUuid } from './text.ts';

export type ProjectRow = Selectable<DB['projects']>;

/** Locks the project's row until the transaction ends. */
export async function requireProject(
  queries: Queries,
  id: string,
  expectedVersion?: number,
): Promise<ProjectRow> {
  const project = isUuid(id)
    ? await queries
        .selectFrom('projects')
        .selectAll()
        .where('id', '=', id)
        .forNoKeyUpdate()
        .executeTakeFirst()
    : undefined;
  if (project === undefined) {
    throw new SwitchboardError('unknown_project', `There is no project with the id "${id}".`);
  }
  requireVersion(`project "${project.name}"`, project.version, expectedVersion);
  return project;
}

/** Without a lock. */
export function namedProject(queries: Queries, id: string): Promise<Pick<ProjectRow, 'id' | 'name'>> {
  return queries.selectFrom('projects').select(['id', 'name']).where('id', '=', id).executeTakeFirstOrThrow();
}

export function requireVersion(what: string, version: number, expected: number | undefined): void {
  if (expected === undefined || expected === version) return;
  throw new SwitchboardError(
    'version_conflict',
    `The ${what} was changed in the meantime: it has version ${version}, not ${expected}.`,
    { data: { version } },
  );
}

export function notFound(kind: string, name: string, project: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is no ${kind} "${name}" in project "${project}".`);
}
