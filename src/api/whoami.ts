import type { Principal } from '../identity/principal.ts';
import type { WhoamiView } from './access-views.ts';
import { whoamiView } from './access-views.ts';
import { ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import type { Services } from './services.ts';

export const whoamiRoutes: Route[] = [
  route('GET', '/whoami', {
    operationId: 'whoami',
    summary: 'Get who sends this request, and the roles that count',
    action: 'any',
    answers: { 200: whoamiView },
    async handle({ services, sender: { principal, address } }) {
      const { kind, id, name, expiresAt } = principal;
      return ok({
        ...{ kind, id, name, address: address ?? null, authentication: services.identity.isOn },
        expires_at: Number.isFinite(expiresAt) ? new Date(expiresAt).toISOString() : null,
        roles: rolesOf(services, principal),
        groups: await groupsOf(services, principal),
      });
    },
  }),
];

/** The role in all projects, and those in projects where it is another. */
function rolesOf({ projects }: Services, { permissions }: Principal): WhoamiView['roles'] {
  const everywhere = permissions.roleIn(undefined);
  const own = projects.list().flatMap(({ id, name }) => {
    const role = permissions.roleIn(id);
    return role === undefined || role === everywhere ? [] : [{ project: { id, name }, role }];
  });
  return everywhere === undefined ? own : [{ project: null, role: everywhere }, ...own];
}

async function groupsOf({ database }: Services, principal: Principal): Promise<WhoamiView['groups']> {
  if (database === undefined || principal.kind === 'local') return [];
  const groups = await database.store.access.listGroups();
  return groups
    .filter(({ members }) => members.some((member) => member.id === principal.id))
    .map(({ id, name }) => ({ id, name }));
}
