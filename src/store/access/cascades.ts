import { ruleText } from '../../identity/rules.ts';
import type { Changes } from '../database.ts';
import { grantsWithHolders, shownGrant } from './grants.ts';
import { limitOf, shownLimit } from './limits.ts';
import type { PrincipalRow } from './rows.ts';
import { ruleOf } from './rules.ts';

/** More would slow down the removal; the log has no room for them either. */
const MAX_ROWS = 500;

/** Whose removal takes other rows along. */
export interface Removed {
  principals?: readonly string[];
  group?: string;
  project?: string;
}

/** For the audit log: the access that goes with it. Lists without rows are left out. */
export async function accessOf(changes: Changes, removed: Removed): Promise<Record<string, unknown>> {
  const lists = {
    members: await membersOf(changes, removed),
    groups: await groupsOf(changes, removed),
    roles: await rolesOf(changes, removed),
    rules: await rulesOf(changes, removed),
    limits: await limitsOf(changes, removed),
  };
  return Object.fromEntries(Object.entries(lists).filter(([, rows]) => rows.length > 0));
}

/** The keys that belong to a project. */
export async function keysOf(
  changes: Changes,
  project: string,
): Promise<Pick<PrincipalRow, 'id' | 'name'>[]> {
  return changes
    .selectFrom('principals')
    .select(['id', 'name'])
    .where('project_id', '=', project)
    .orderBy('name')
    .execute();
}

async function membersOf(changes: Changes, { group }: Removed): Promise<object[]> {
  if (group === undefined) return [];
  return changes
    .selectFrom('group_members')
    .innerJoin('principals', 'principals.id', 'group_members.principal_id')
    .select(['principals.id', 'principals.name'])
    .where('group_id', '=', group)
    .orderBy('principals.name')
    .limit(MAX_ROWS)
    .execute();
}

async function groupsOf(changes: Changes, { principals = [] }: Removed): Promise<object[]> {
  if (principals.length === 0) return [];
  return changes
    .selectFrom('group_members')
    .innerJoin('groups', 'groups.id', 'group_members.group_id')
    .select(['groups.id', 'groups.name'])
    .distinct()
    .where('principal_id', 'in', principals)
    .orderBy('groups.name')
    .limit(MAX_ROWS)
    .execute();
}

async function rolesOf(changes: Changes, { principals = [], group, project }: Removed): Promise<object[]> {
  const rows = await grantsWithHolders(changes)
    .where((is) =>
      is.or([
        ...(principals.length === 0 ? [] : [is('grants.principal_id', 'in', principals)]),
        ...(group === undefined ? [] : [is('grants.group_id', '=', group)]),
        ...(project === undefined ? [] : [is('grants.project_id', '=', project)]),
      ]),
    )
    .limit(MAX_ROWS)
    .execute();
  return rows.map((row) => ({ ...shownGrant(row), project: row.project_id }));
}

async function rulesOf(changes: Changes, { principals = [], group, project }: Removed): Promise<object[]> {
  const rows = await changes
    .selectFrom('rules')
    .selectAll()
    .where((is) =>
      is.or([
        ...(principals.length === 0 ? [] : [is('subject_principal', 'in', principals)]),
        ...(group === undefined ? [] : [is('subject_group', '=', group)]),
        ...(project === undefined ? [] : [is('project_id', '=', project)]),
      ]),
    )
    .orderBy('created_at')
    .orderBy('id')
    .limit(MAX_ROWS)
    .execute();
  return rows.map((row) => ({ id: row.id, text: ruleText(ruleOf(row)), project: row.project_id }));
}

async function limitsOf(changes: Changes, { principals = [], project }: Removed): Promise<object[]> {
  if (principals.length === 0 && project === undefined) return [];
  const rows = await changes
    .selectFrom('limits')
    .selectAll()
    .where((is) =>
      is.or([
        ...(principals.length === 0 ? [] : [is('principal_id', 'in', principals)]),
        ...(project === undefined ? [] : [is('project_id', '=', project)]),
      ]),
    )
    .orderBy('created_at')
    .orderBy('id')
    .limit(MAX_ROWS)
    .execute();
  return rows.map((row) => ({ ...shownLimit(limitOf(row)), project: row.project_id }));
}
