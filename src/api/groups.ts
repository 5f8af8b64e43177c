import type { GroupWithMembers } from '../store/access/groups.ts';
import { newGroup } from './access-input.ts';
import { checkRoom, projectRef } from './access-places.ts';
import { type GroupView, groupList, groupView } from './access-views.ts';
import { created, noContent, ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { findGroup, findPrincipal } from './principals.ts';
import { applyAccess, needDatabase, type Services } from './services.ts';

export const groupRoutes: Route[] = [
  route('GET', '/groups', {
    operationId: 'listGroups',
    summary: 'List the groups with their members',
    action: 'administer',
    answers: { 200: groupList },
    async handle({ services }) {
      const groups = await needDatabase(services).store.access.listGroups();
      return ok({ groups: groups.map((group) => groupViewOf(services, group)) });
    },
  }),
  route('POST', '/groups', {
    operationId: 'createGroup',
    summary: 'Create a group',
    action: 'administer',
    body: newGroup,
    answers: { 201: groupView },
    async handle({ services, sender, body: { name, description } }) {
      const { store } = needDatabase(services);
      checkRoom((await store.access.listGroups()).length, 'groups');
      const row = await applyAccess(services, sender, ({ access }) =>
        access.createGroup({ name, description: description ?? '' }),
      );
      return created(groupViewOf(services, { ...row, members: [] }), 'groups', row.id);
    },
  }),
  route('DELETE', '/groups/:group', {
    operationId: 'removeGroup',
    summary: 'Remove a group, with its roles and the rules for it',
    action: 'administer',
    answers: { 204: null },
    async handle({ services, sender, params }) {
      const { id } = await findGroup(services, params.group);
      await applyAccess(services, sender, ({ access }) => access.removeGroup(id));
      return noContent;
    },
  }),
  route('PUT', '/groups/:group/members/:principal', {
    operationId: 'joinGroup',
    summary: 'Put a key into a group: it has the roles of the group too, and its rules apply to it',
    action: 'administer',
    answers: { 204: null },
    async handle({ params, ...asking }) {
      const { services, sender } = asking;
      const groups = await needDatabase(services).store.access.listGroups();
      const group = await findGroup(services, params.group);
      const principal = await findPrincipal(asking, params.principal);
      const members = groups.reduce((total, each) => total + each.members.length, 0);
      checkRoom(members, 'memberships in groups');
      await applyAccess(services, sender, ({ access }) => access.addMember(group.id, principal.id));
      return noContent;
    },
  }),
  route('DELETE', '/groups/:group/members/:principal', {
    operationId: 'leaveGroup',
    summary: 'Take a key out of a group',
    action: 'administer',
    answers: { 204: null },
    async handle({ params, ...asking }) {
      const { services, sender } = asking;
      const group = await findGroup(services, params.group);
      const principal = await findPrincipal(asking, params.principal);
      await applyAccess(services, sender, ({ access }) => access.removeMember(group.id, principal.id));
      return noContent;
    },
  }),
];

function groupViewOf(services: Services, { members, ...row }: GroupWithMembers): GroupView {
  return {
    id: row.id,
    name: row.name,
    description: row.description || null,
    created_at: row.created_at.toISOString(),
    members: members.map(({ id, kind, name, project_id }) => ({
      ...{ id, kind, name },
      project: projectRef(services, project_id),
    })),
  };
}
