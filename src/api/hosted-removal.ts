import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { Hosting } from '../projects/hosting/hosting.ts';
import type { RegisteredServer } from '../projects/hosting/registered.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { WorkspaceRow } from '../store/workspaces.ts';
import { applyChange, needDatabase, type Services } from './services.ts';

function findAll(hosting: Hosting, idOrName: string): RegisteredServer[] {
  const all = hosting.registered.all();
  const byId = all.find(({ row }) => row.id === idOrName);
  return byId === undefined ? all.filter(({ row }) => row.name === idOrName) : [byId];
}

/** Finds a server by id, or by name if the name is unique across projects. */
export function findHosted(
  services: Services,
  idOrName: string,
): { hosting: Hosting; registered: RegisteredServer; id: string } {
  const { hosting } = needDatabase(services);
  const [registered, ...others] = findAll(hosting, idOrName);
  if (registered === undefined) {
    throw new SwitchboardError('not_found', `There is no hosted server ${JSON.stringify(idOrName)}.`);
  }
  if (others.length === 0) return { hosting, registered, id: registered.row.id };
  const ids = [registered, ...others].map(({ row, project }) => `${row.id} in "${project.name}"`);
  throw new SwitchboardError(
    'conflict',
    `Several projects have a hosted server ${JSON.stringify(idOrName)}: use its id (${ids.join(', ')}).`,
  );
}

export async function removeHosted(
  services: Services,
  idOrName: string,
  deletesVolumes: boolean,
  owner: string,
  ifVersion: number | undefined,
): Promise<void> {
  const { hosting } = needDatabase(services);
  if (deletesVolumes && findAll(hosting, idOrName).length === 0) {
    return removeLeftVolumes(hosting, services.projects.get(owner), idOrName);
  }
  const { id, registered } = findHosted(services, idOrName);
  const { row, project } = registered;
  const supervisor = deletesVolumes ? await hosting.requireSupervisor(id) : undefined;
  const obstacle = await supervisor?.volumesUnavailable(id);
  if (obstacle !== undefined && row.mcp_config.volumes.length > 0) throw volumesUnavailable(row, obstacle);
  await applyChange(services, project, (store) => store.hosted.delete(id, ifVersion));
  if (obstacle !== undefined) return;
  await supervisor?.removeVolumes(id).catch((error: unknown) => Promise.reject(volumesLeft(row, error)));
}

/** Volumes outlive their server, and are identified by its name. */
async function removeLeftVolumes(hosting: Hosting, { id, name }: LiveProject, server: string): Promise<void> {
  const removed = await hosting.removeOrphanedVolumes({ name: server, project: id });
  if (removed.length > 0) return;
  throw new SwitchboardError(
    'not_found',
    `There is no hosted server ${JSON.stringify(server)}, and project "${name}" has no volumes of a former server with that name.`,
  );
}

/** Thrown before the removal: afterwards the volumes could not be found through the server. */
function volumesUnavailable({ id, name, mcp_config }: WorkspaceRow, why: string): SwitchboardError {
  return new SwitchboardError(
    'conflict',
    `The volumes of the hosted server "${name}" (${mcp_config.volumes.join(', ')}) cannot be removed now, so nothing was removed: ${why}\nFix that and try again, or remove the server without volumes=delete (switchboard rm without --volumes): its volumes then stay for the next server of that name.`,
    { data: { server: name, id, volumes: mcp_config.volumes } },
  );
}

/** The server is removed, so its volumes can only be found by its name. */
function volumesLeft({ name }: WorkspaceRow, error: unknown): SwitchboardError {
  const { code, message, data } = asSwitchboardError(error);
  return new SwitchboardError(
    code,
    `The hosted server "${name}" was removed, but its volumes could not be: ${message}\nTo remove them later: switchboard rm ${name} --volumes, or the same DELETE again with its name.`,
    { cause: error, data },
  );
}
