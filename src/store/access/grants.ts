import type { Selectable } from 'kysely';
import type { Grant } from '../../identity/policy.ts';
import type { Role } from '../../identity/roles.ts';
import type { Database, Queries } from '../database.ts';
import type { DB } from '../schema.ts';
import { isUuid } from '../text.ts';
import {
  type GroupRow,
  noSuch,
  type PrincipalRow,
  projectOf,
  requireGroup,
  requirePrincipal,
} from './rows.ts';

export interface GrantRow extends Selectable<DB['grants']> {
  /** Of the principal or group that holds the role. */
  holder_name: string;
}

export interface NewGrant {
  holder: Grant['holder'];
  /** Null: all projects. */
  projectId: string | null;
  role: Role;
}

export function listGrants(database: Database): Promise<GrantRow[]> {
  return database.run((queries) => grantsWithHolders(queries).execute());
}

/** A role that the holder has there already is replaced. */
export function grant(database: Database, { holder, projectId, role }: NewGrant): Promise<GrantRow> {
  return database.write(async (changes, audit) => {
    const project = await projectOf(changes, projectId);
    const isGroup = holder.kind === 'group';
    const found: PrincipalRow | GroupRow = isGroup
      ? await requireGroup(changes, holder.id)
      : await requirePrincipal(changes, holder.id);
    const before = await grantsWithHolders(changes)
      .where(isGroup ? 'grants.group_id' : 'grants.principal_id', '=', holder.id)
      .where('grants.project_id', 'is not distinct from', projectId)
      .executeTakeFirst();
    if (before?.role === role) return before;
    const row = await changes
      .insertInto('grants')
      .values({ [isGroup ? 'group_id' : 'principal_id']: holder.id, project_id: projectId, role })
      .onConflict((conflict) =>
        conflict.columns(['principal_id', 'group_id', 'project_id']).doUpdateSet({ role }),
      )
      .returningAll()
      .executeTakeFirstOrThrow();
    const after = { ...row, holder_name: found.name };
    audit({
      ...{ action: 'role.grant', project, subject: found.name },
      ...{ before: before && shownGrant(before), after: shownGrant(after) },
    });
    return after;
  });
}

export function revokeGrant(database: Database, id: string): Promise<void> {
  return database.write(async (changes, audit) => {
    const row = isUuid(id)
      ? await grantsWithHolders(changes).where('grants.id', '=', id).executeTakeFirst()
      : undefined;
    if (row === undefined) throw noSuch('grant', id);
    const project = await projectOf(changes, row.project_id);
    const { numDeletedRows } = await changes
      .deleteFrom('grants')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    if (numDeletedRows === 0n) throw noSuch('grant', id);
    audit({ action: 'role.revoke', project, subject: row.holder_name, before: shownGrant(row) });
  });
}

export function grantsWithHolders(queries: Queries) {
  return queries
    .selectFrom('grants')
    .leftJoin('principals', 'principals.id', 'grants.principal_id')
    .leftJoin('groups', 'groups.id', 'grants.group_id')
    .selectAll('grants')
    .select(({ fn }) => fn.coalesce('principals.name', 'groups.name').$notNull().as('holder_name'))
    .orderBy('grants.created_at')
    .orderBy('grants.id');
}

/** For the audit log. */
export function shownGrant({ id, role, principal_id, group_id, holder_name }: GrantRow): object {
  const kind = group_id === null ? 'principal' : 'group';
  return { id, role, holder: { kind, id: group_id ?? principal_id, name: holder_name } };
}
