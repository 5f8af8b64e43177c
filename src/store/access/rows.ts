import { randomInt } from 'node:crypto';
import type { Selectable } from 'kysely';
import { SwitchboardError } from '../../errors.ts';
import type { Changes } from '../database.ts';
import { violates } from '../failure.ts';
import { type ProjectRow, requireProject } from '../project-rows.ts';
import type { DB } from '../schema.ts';
import { isUuid } from '../text.ts';

export type PrincipalRow = Selectable<DB['principals']>;
export type GroupRow = Selectable<DB['groups']>;

const ID_LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';
const ID_LENGTH = 8;

/** Short enough to be typed. */
export function shortId(first: 'r' | 'l'): string {
  const letter = () => ID_LETTERS[randomInt(ID_LETTERS.length)];
  return first + Array.from({ length: ID_LENGTH }, letter).join('');
}

/** Locks the row. Without an id: all projects. */
export async function projectOf(
  changes: Changes,
  id: string | null | undefined,
): Promise<ProjectRow | undefined> {
  return id === null || id === undefined ? undefined : requireProject(changes, id);
}

/** Locks the row. */
export async function requirePrincipal(changes: Changes, id: string): Promise<PrincipalRow> {
  const row = isUuid(id)
    ? await changes
        .selectFrom('principals')
        .selectAll()
        .where('id', '=', id)
        .forNoKeyUpdate()
        .executeTakeFirst()
    : undefined;
  if (row === undefined) throw noSuch('key or person', id);
  return row;
}

/** Locks the row. */
export async function requireGroup(changes: Changes, id: string): Promise<GroupRow> {
  const row = isUuid(id)
    ? await changes.selectFrom('groups').selectAll().where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
    : undefined;
  if (row === undefined) throw noSuch('group', id);
  return row;
}

export function noSuch(kind: string, id: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is no ${kind} with the id "${id}".`);
}

/** Turns the violation of a unique name into a conflict. */
export async function nameTaken<Result>(
  constraint: string,
  what: string,
  name: string | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!violates(error, constraint) || name === undefined) throw error;
    throw new SwitchboardError('conflict', `There is a ${what} "${name}" already. Choose another name.`, {
      cause: error,
      data: { names: [name] },
    });
  }
}
