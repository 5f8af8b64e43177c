import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { Hosting } from '../projects/hosting/hosting.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { WorkspaceRow } from '../store/workspaces.ts';
import { findHosted, findVisible } from './hosted-lookup.ts';
import { findProject } from './http/authorization.ts';
import type { Asking } from './http/route.ts';
import { applyChange, needDatabase } from './services.ts';

export async function removeHosted(
  asking: Asking,
  idOrName: string,
  deletesVolumes: boolean,
  owner: string,
  ifVersion: number | undefined,
): Promise<void> {
  const { services, sender } = asking;
  const { hosting } = needDatabase(services);
  if (deletesVolumes && findVisible(asking, idOrName).length === 0) {
    const project = findProject(services, sender, owner);
    asking.authorize(project, idOrName);
    return removeLeftVolumes(hosting, project, idOrName);
  }
  const { id, registered } = findHosted(asking, idOrName);
  const { row, project } = registered;
  const supervisor = deletesVolumes ? await hosting.requireSupervisor(id) : undefined;
  const obstacle = await supervisor?.volumesUnavailable(id);
  if (obstacle !== undefined && row.mcp_config.volumes.length > 0) throw volumesUnavailable(row, obstacle);
  await applyChange(services, sender, project, (store) => store.hosted.delete(id, ifVersion));
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
