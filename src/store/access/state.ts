import type { AccessState } from '../../identity/policy.ts';
import type { Database, Queries } from '../database.ts';
import { readLimits } from './limits.ts';
import { readRules } from './rules.ts';

export function readState(database: Database): Promise<AccessState> {
  return database.readTogether(async (queries) => {
    const rules = await readRules(queries);
    const limits = await readLimits(queries);
    return { ...(await readHolders(queries)), rules, limits };
  });
}

async function readHolders(queries: Queries): Promise<Omit<AccessState, 'rules' | 'limits'>> {
  const principals = await queries
    .selectFrom('principals')
    .select(['id', 'kind', 'name', 'expires_at'])
    .execute();
  const secrets = await queries
    .selectFrom('keys')
    .select(['id', 'principal_id', 'hash', 'expires_at'])
    .execute();
  const members = await queries.selectFrom('group_members').selectAll().execute();
  const grants = await queries
    .selectFrom('grants')
    .select(['principal_id', 'group_id', 'project_id', 'role'])
    .execute();
  return {
    principals: principals.map(({ id, kind, name, expires_at }) => ({
      ...{ id, kind, name },
      expiresAt: expires_at?.getTime(),
    })),
    secrets: secrets.map(({ id, principal_id, hash, expires_at }) => ({
      ...{ id, principal: principal_id, hash },
      expiresAt: expires_at?.getTime(),
    })),
    members: members.map(({ group_id, principal_id }) => ({ group: group_id, principal: principal_id })),
    grants: grants.map(({ principal_id, group_id, project_id, role }) => ({
      holder: group_id === null ? { kind: 'principal', id: principal_id! } : { kind: 'group', id: group_id },
      project: project_id ?? undefined,
      role,
    })),
  };
}
