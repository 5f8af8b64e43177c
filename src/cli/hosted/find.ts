import type { HostedView } from '../../api/hosted-views.ts';
import { SwitchboardError } from '../../errors.ts';
import { apiPath, callApi } from '../api.ts';

interface Query {
  url: string;
  project?: string | undefined;
}

export async function allHosted({ url, project }: Query): Promise<HostedView[]> {
  const { servers } = await callApi<{ servers: HostedView[] }>(url, 'GET', '/mcp/servers', {
    query: { project },
  });
  return servers;
}

export async function findHosted(server: string, query: Query): Promise<HostedView> {
  const servers = await allHosted(query);
  const found = servers.filter(({ id, name }) => id === server || name === server);
  if (found.length === 1) return found[0]!;
  throw found.length === 0 ? unknown(server, servers, query) : ambiguous(server, found);
}

export function hostedPath({ id }: Pick<HostedView, 'id'>, ...parts: string[]): string {
  return apiPath('mcp', 'servers', id, ...parts);
}

export function ambiguous(server: string, found: readonly HostedView[]): SwitchboardError {
  const projects = found.map(({ project }) => project).join(', ');
  return new SwitchboardError(
    'conflict',
    `Several projects have a hosted server "${server}": choose one with -P (${projects}).`,
  );
}

function unknown(server: string, servers: readonly HostedView[], { project }: Query): SwitchboardError {
  const where = project === undefined ? '' : ` in project "${project}"`;
  const known = servers.map(({ name }) => name).join(', ');
  return new SwitchboardError(
    'not_found',
    `There is no hosted server "${server}"${where}. ${known === '' ? 'There are no hosted servers.' : `There are: ${known}.`}`,
  );
}
