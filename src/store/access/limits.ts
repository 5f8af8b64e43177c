import type { Selectable } from 'kysely';
import type { Limit } from '../../identity/policy.ts';
import type { Database, Queries } from '../database.ts';
import type { DB } from '../schema.ts';
import { noSuch, projectOf, requirePrincipal, shortId } from './rows.ts';

export interface StoredLimit extends Limit {
  createdAt: Date;
}

/** In the order of their creation. */
export function listLimits(database: Database): Promise<StoredLimit[]> {
  return database.run(readLimits);
}

export async function readLimits(queries: Queries): Promise<StoredLimit[]> {
  const rows = await queries.selectFrom('limits').selectAll().orderBy('created_at').orderBy('id').execute();
  return rows.map(limitOf);
}

export function createLimit(database: Database, input: Omit<Limit, 'id'>): Promise<StoredLimit> {
  return database.write(async (changes, audit) => {
    const project = await projectOf(changes, input.project);
    if (input.principal !== undefined) await requirePrincipal(changes, input.principal);
    const row = await changes
      .insertInto('limits')
      .values({
        ...{ id: shortId('l'), principal_id: input.principal ?? null, project_id: input.project ?? null },
        ...{ server: input.server ?? null, tool: input.tool ?? null, is_shared: input.isShared },
        ...{ per_minute: input.perMinute ?? null, concurrent: input.concurrent ?? null },
      })
      .returningAll()
      .executeTakeFirstOrThrow();
    const limit = limitOf(row);
    audit({ action: 'limit.create', project, subject: limit.id, after: shownLimit(limit) });
    return limit;
  });
}

export function removeLimit(database: Database, id: string): Promise<void> {
  return database.write(async (changes, audit) => {
    const row = await changes.deleteFrom('limits').where('id', '=', id).returningAll().executeTakeFirst();
    if (row === undefined) throw noSuch('limit', id);
    const project = await projectOf(changes, row.project_id);
    audit({ action: 'limit.remove', project, subject: id, before: shownLimit(limitOf(row)) });
  });
}

export function limitOf(row: Selectable<DB['limits']>): StoredLimit {
  return {
    ...{ id: row.id, principal: row.principal_id ?? undefined, project: row.project_id ?? undefined },
    ...{ server: row.server ?? undefined, tool: row.tool ?? undefined },
    ...{ perMinute: row.per_minute ?? undefined, concurrent: row.concurrent ?? undefined },
    ...{ isShared: row.is_shared, createdAt: row.created_at },
  };
}

/** For the audit log. */
export function shownLimit({ createdAt: _, project: __, ...limit }: StoredLimit): object {
  return limit;
}
