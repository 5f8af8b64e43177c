import { SwitchboardError } from '../errors.ts';
import type { Action } from '../identity/roles.ts';
import { actions, roleMay, roles } from '../identity/roles.ts';
import type { GrantRow } from '../store/access/grants.ts';
import { newGrant, placeQuery } from './access-input.ts';
import {
  authorizeRow,
  checkHeld,
  checkRank,
  checkRoom,
  listedPlaces,
  placeOf,
  projectRef,
} from './access-places.ts';
import { type GrantView, grantList, grantView, type RoleTable, roleTable } from './access-views.ts';
import { noContent, ok } from './http/reply.ts';
import { type Asking, type Route, route } from './http/route.ts';
import { findGroup, findPrincipal } from './principals.ts';
import { applyAccess, needDatabase, type Services } from './services.ts';

export const grantRoutes: Route[] = [
  route('GET', '/roles', {
    operationId: 'getRoles',
    summary: 'Get the roles, and what each may do',
    action: 'any',
    answers: { 200: roleTable },
    handle: () => ok(table),
  }),
  route('GET', '/grants', {
    operationId: 'listGrants',
    summary: 'List who has which role, in a project or in all whose access the sender manages',
    action: 'manage',
    authorizesItself: true,
    query: placeQuery,
    answers: { 200: grantList },
    async handle({ query, ...asking }) {
      const { services } = asking;
      const { store } = needDatabase(services);
      const isListed = listedPlaces(asking, query.project);
      const rows = await store.access.listGrants();
      const listed = rows.filter(({ project_id }) => isListed(project_id));
      return ok({ grants: listed.map((row) => grantViewOf(services, row)) });
    },
  }),
  route('PUT', '/grants', {
    operationId: 'grantRole',
    summary: 'Give a key or a group a role, instead of the one that it has there',
    action: 'manage',
    authorizesItself: true,
    body: newGrant,
    answers: { 200: grantView },
    async handle({ body: { principal, group, project: named, role }, ...asking }) {
      const { services, sender } = asking;
      const { store } = needDatabase(services);
      const project = placeOf(asking, named, principal ?? group);
      const holder = await findHolder(asking, principal, group);
      checkRank(asking, role, project, holder.name);
      const grants = await store.access.listGrants();
      const projectId = project?.id ?? null;
      const before = grants.find((row) => holderOf(row) === holder.id && row.project_id === projectId);
      if (before !== undefined) checkHeld(asking, [{ role: before.role, projectId }], nounOf(before));
      else checkRoom(grants.length, 'roles of keys and groups');
      const row = await applyAccess(services, sender, ({ access }) =>
        access.grant({ holder, projectId, role }),
      );
      return ok(grantViewOf(services, row));
    },
  }),
  route('DELETE', '/grants/:grant', {
    operationId: 'revokeGrant',
    summary: 'Take a role from a key or a group',
    action: 'manage',
    authorizesItself: true,
    answers: { 204: null },
    async handle({ params, ...asking }) {
      const { services, sender } = asking;
      const rows = await needDatabase(services).store.access.listGrants();
      const grant = rows.find(({ id }) => id === params.grant);
      const noSuch = new SwitchboardError('not_found', `There is no grant ${JSON.stringify(params.grant)}.`);
      // Null, which only administrators manage, if there is none.
      authorizeRow(asking, grant?.project_id, params.grant, noSuch);
      if (grant === undefined) throw noSuch;
      checkHeld(asking, [{ role: grant.role, projectId: grant.project_id }], nounOf(grant));
      await applyAccess(services, sender, ({ access }) => access.revokeGrant(grant.id));
      return noContent;
    },
  }),
];

const actionNames = Object.keys(actions) as Action[];

const table: RoleTable = {
  roles: roles.map((role) => ({ role, actions: actionNames.filter((action) => roleMay(role, action)) })),
  actions: actionNames.map((action) => ({ action, ...actions[action] })),
};

async function findHolder(
  asking: Asking,
  principal: string | undefined,
  group: string | undefined,
): Promise<{ kind: 'principal' | 'group'; id: string; name: string }> {
  if (group !== undefined) return { ...(await findGroup(asking.services, group)), kind: 'group' };
  return { ...(await findPrincipal(asking, principal!)), kind: 'principal' };
}

function holderOf({ principal_id, group_id }: GrantRow): string {
  return (principal_id ?? group_id)!;
}

function nounOf({ group_id, holder_name }: GrantRow): string {
  return `${group_id === null ? 'key' : 'group'} ${holder_name}`;
}

function grantViewOf(services: Services, row: GrantRow): GrantView {
  return {
    id: row.id,
    holder: {
      kind: row.group_id === null ? 'principal' : 'group',
      id: holderOf(row),
      name: row.holder_name,
    },
    project: projectRef(services, row.project_id),
    role: row.role,
    created_at: row.created_at.toISOString(),
  };
}
