import type { Changes, Database } from '../database.ts';
import { accessOf } from './cascades.ts';
import { type GroupRow, nameTaken, type PrincipalRow, requireGroup, requirePrincipal } from './rows.ts';

const NAMES = 'groups_name_key';

export interface GroupWithMembers extends GroupRow {
  /** By name. */
  members: Pick<PrincipalRow, 'id' | 'kind' | 'name' | 'project_id'>[];
}

export interface NewGroup {
  name: string;
  description?: string | undefined;
}

/** By name. */
export function listGroups(database: Database): Promise<GroupWithMembers[]> {
  return database.readTogether(async (queries) => {
    const groups = await queries.selectFrom('groups').selectAll().orderBy('name').execute();
    const members = await queries
      .selectFrom('group_members')
      .innerJoin('principals', 'principals.id', 'group_members.principal_id')
      .select(['group_id', 'id', 'kind', 'name', 'project_id'])
      .orderBy('name')
      .orderBy('created_at')
      .execute();
    const membersOf = Map.groupBy(members, ({ group_id }) => group_id);
    return groups.map((group) => ({
      ...group,
      members: (membersOf.get(group.id) ?? []).map(({ group_id: _, ...member }) => member),
    }));
  });
}

export function createGroup(database: Database, { name, description = '' }: NewGroup): Promise<GroupRow> {
  return nameTaken(NAMES, 'group', name, () =>
    database.write(async (changes, audit) => {
      const group = await changes
        .insertInto('groups')
        .values({ name, description })
        .returningAll()
        .executeTakeFirstOrThrow();
      audit({ action: 'group.create', subject: name, after: shown(group) });
      return group;
    }),
  );
}

/** With its grants, and the rules about it. */
export function removeGroup(database: Database, id: string): Promise<void> {
  return database.write(async (changes, audit) => {
    const group = await requireGroup(changes, id);
    const before = { ...shown(group), ...(await accessOf(changes, { group: id })) };
    await changes.deleteFrom('groups').where('id', '=', id).execute();
    audit({ action: 'group.remove', subject: group.name, before });
  });
}

/** Whoever is a member already stays one. */
export function addMember(database: Database, groupId: string, principalId: string): Promise<void> {
  return database.write(async (changes, audit) => {
    const { group, principal } = await requireBoth(changes, groupId, principalId);
    const { numInsertedOrUpdatedRows } = await changes
      .insertInto('group_members')
      .values({ group_id: groupId, principal_id: principalId })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow();
    if (numInsertedOrUpdatedRows === 0n) return;
    audit({ action: 'group.join', subject: group.name, after: membership(group, principal) });
  });
}

/** Whoever is no member already stays none. */
export function removeMember(database: Database, groupId: string, principalId: string): Promise<void> {
  return database.write(async (changes, audit) => {
    const { group, principal } = await requireBoth(changes, groupId, principalId);
    const { numDeletedRows } = await changes
      .deleteFrom('group_members')
      .where('group_id', '=', groupId)
      .where('principal_id', '=', principalId)
      .executeTakeFirstOrThrow();
    if (numDeletedRows === 0n) return;
    audit({ action: 'group.leave', subject: group.name, before: membership(group, principal) });
  });
}

async function requireBoth(changes: Changes, groupId: string, principalId: string) {
  const principal = await requirePrincipal(changes, principalId);
  return { group: await requireGroup(changes, groupId), principal };
}

/** For the audit log. */
function shown({ id, name, description }: GroupRow): object {
  return { id, name, description };
}

/** For the audit log. */
function membership(group: GroupRow, principal: PrincipalRow): object {
  return {
    group: { id: group.id, name: group.name },
    principal: { id: principal.id, name: principal.name },
  };
}
