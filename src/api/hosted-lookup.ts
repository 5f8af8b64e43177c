import { SwitchboardError } from '../errors.ts';
import type { Hosting } from '../projects/hosting/hosting.ts';
import type { RegisteredServer } from '../projects/hosting/registered.ts';
import { hide } from './http/authorization.ts';
import type { Asking } from './http/route.ts';
import { needDatabase, type Services } from './services.ts';
import { denyServer, Sight } from './sight.ts';

export interface FoundHosted {
  hosting: Hosting;
  registered: RegisteredServer;
  id: string;
}

/** The servers with this id or name that the sender sees: others do not exist for it. */
export function findVisible(
  { services, sender: { principal } }: Asking,
  idOrName: string,
): RegisteredServer[] {
  return findAll(services, idOrName).filter(
    ({ row, project }) =>
      principal.permissions.may('see', project.id) &&
      new Sight(services.projects, project, principal).shows(row),
  );
}

/** By id, or by name if the name is unique across projects. Throws unless the sender may do what the route needs. */
export function findHosted(asking: Asking, idOrName: string): FoundHosted {
  const { services, sender, authorize } = asking;
  const { hosting } = needDatabase(services);
  const [registered, ...others] = findVisible(asking, idOrName);
  if (registered === undefined) {
    const [hidden] = findAll(services, idOrName);
    if (hidden === undefined) throw noHosted(idOrName);
    const { control } = services.identity;
    const error = noHosted(idOrName);
    return hide(() => denyServer(control, sender, hidden.project, hidden.row, () => error), error);
  }
  if (others.length === 0) {
    authorize(registered.project, registered.row.name);
    return { hosting, registered, id: registered.row.id };
  }
  const ids = [registered, ...others].map(({ row, project }) => `${row.id} in "${project.name}"`);
  throw new SwitchboardError(
    'conflict',
    `Several projects have a hosted server ${JSON.stringify(idOrName)}: use its id (${ids.join(', ')}).`,
  );
}

/** After the sender was authorized. */
export function findById(services: Services, id: string): RegisteredServer {
  const registered = needDatabase(services).hosting.registered.find(id);
  if (registered === undefined) throw noHosted(id);
  return registered;
}

function findAll(services: Services, idOrName: string): RegisteredServer[] {
  const all = needDatabase(services).hosting.registered.all();
  const byId = all.find(({ row }) => row.id === idOrName);
  return byId === undefined ? all.filter(({ row }) => row.name === idOrName) : [byId];
}

function noHosted(idOrName: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is no hosted server ${JSON.stringify(idOrName)}.`);
}
