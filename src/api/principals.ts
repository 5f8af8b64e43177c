import { SwitchboardError } from '../errors.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { GrantRow } from '../store/access/grants.ts';
import type { GroupWithMembers } from '../store/access/groups.ts';
import type { KeyRow } from '../store/access/keys.ts';
import { authorizeRow, expectManager, manages } from './access-places.ts';
import type { Asking } from './http/route.ts';
import { needDatabase, type Services } from './services.ts';

/** Finds a key that the sender manages: by id, by name if that is unique, or as project/name. */
export async function findKey(asking: Asking, given: string): Promise<KeyRow> {
  expectManager(asking);
  const { services, sender } = asking;
  const named = matching(services, await needDatabase(services).store.access.listKeys(), given);
  const own = named.filter(({ project_id }) => manages(sender.principal.permissions, project_id));
  const key = theOnly(services, own.length === 0 ? named.slice(0, 1) : own, given);
  const noSuch = noKey(given);
  if (key === undefined) throw noSuch;
  authorizeRow(asking, key.project_id, `key ${key.name}`, noSuch);
  return key;
}

/** Finds whom roles, rules and limits can be for: also keys of elsewhere that see a project whose access the sender manages. */
export async function findPrincipal({ services, sender }: Asking, given: string): Promise<KeyRow> {
  const { permissions, id: ownId } = sender.principal;
  const { policy } = services.identity;
  const managed = services.projects.list().filter(({ id }) => manages(permissions, id));
  const entersManaged = (id: string) =>
    managed.some((project) => policy.get(id)?.permissions.may('see', project.id));
  const keys = await needDatabase(services).store.access.listKeys();
  const visible = keys.filter(
    ({ id, project_id }) => id === ownId || manages(permissions, project_id) || entersManaged(id),
  );
  // Others do not exist, not even in a name or an error.
  const seesHome = (home: string) => permissions.may('see', home);
  const key = theOnly(services, matching(services, visible, given, seesHome), given, seesHome);
  if (key !== undefined) return key;
  throw noKey(given);
}

/** By id or name. */
export async function findGroup(services: Services, given: string): Promise<GroupWithMembers> {
  const groups = await needDatabase(services).store.access.listGroups();
  const group = groups.find(({ id }) => id === given) ?? groups.find(({ name }) => name === given);
  if (group !== undefined) return group;
  throw new SwitchboardError('not_found', `There is no group ${JSON.stringify(given)}.`);
}

/** Of actors that are no keys. A key that got such a name before names were checked must not stand in for them. */
const actorIds = new Set(['local', 'system']);

/** For filters, which may also name somebody who is gone: then by id. */
export async function principalId(asking: Asking, given: string): Promise<string> {
  if (actorIds.has(given)) return given;
  try {
    return (await findPrincipal(asking, given)).id;
  } catch (error) {
    if (error instanceof SwitchboardError && error.code === 'not_found') return given;
    throw error;
  }
}

/** All roles of a principal or group, with those that it has through groups. */
export async function rolesOf(services: Services, id: string): Promise<GrantRow[]> {
  const { access } = needDatabase(services).store;
  const [grants, groups] = await Promise.all([access.listGrants(), access.listGroups()]);
  const holders = new Set([id]);
  for (const group of groups) if (group.members.some((member) => member.id === id)) holders.add(group.id);
  return grants.filter(({ principal_id, group_id }) => holders.has((principal_id ?? group_id)!));
}

function matching(
  { projects }: Services,
  keys: readonly KeyRow[],
  given: string,
  seesHome = (_project: string) => true,
): KeyRow[] {
  const byId = keys.filter(({ id }) => id === given);
  if (byId.length > 0) return byId;
  const slash = given.indexOf('/');
  if (slash === -1) return keys.filter(({ name }) => name === given);
  const home: LiveProject | undefined = projects.lookUp(given.slice(0, slash));
  const name = given.slice(slash + 1);
  if (home === undefined || !seesHome(home.id)) return [];
  return keys.filter((key) => key.project_id === home.id && key.name === name);
}

function theOnly(
  { projects }: Services,
  [key, ...others]: readonly KeyRow[],
  given: string,
  seesHome = (_project: string) => true,
): KeyRow | undefined {
  if (key === undefined || others.length === 0) return key;
  const homes = [key, ...others].map(({ id, project_id }) => {
    if (project_id === null) return `${id} of all projects`;
    return seesHome(project_id) ? `${id} of ${JSON.stringify(projects.lookUp(project_id)?.name)}` : id;
  });
  throw new SwitchboardError(
    'conflict',
    `Several keys have the name ${JSON.stringify(given)}: use an id, or project/name (${homes.join(', ')}).`,
  );
}

function noKey(given: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is no key ${JSON.stringify(given)}.`);
}
