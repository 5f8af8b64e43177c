import type { HostedView } from '../../api/hosted-views.ts';
import { counted, firstLine, localTime, oneLine, table } from '../output.ts';

export function statusText(status: string): string {
  return status.replaceAll('_', ' ');
}

export function hostedRow(server: HostedView, now: Date): string[] {
  const { name, project, status, provider, requested_provider, image, command, restart_count } = server;
  return [
    name,
    project,
    statusText(status),
    provider ?? requested_provider ?? '',
    image ?? command ?? '',
    restart_count === 0 ? '' : counted(restart_count, 'restart'),
    uptimeText(server),
    hostedNotes({ ...server, error: server.error && firstLine(server.error) }, now),
  ];
}

/** Why it is not ready, and when it is retried. */
export function hostedNotes({ error, next_try, health }: HostedView, now: Date): string {
  const seconds = next_try === null ? undefined : Math.ceil((Date.parse(next_try) - now.getTime()) / 1_000);
  const next = seconds === undefined ? '' : seconds <= 0 ? 'next try now' : `next try in ${seconds} s`;
  const warning = health === 'warning' && error === null ? 'health warning' : '';
  return [oneLine(error ?? ''), warning, next].filter((note) => note !== '').join(' · ');
}

export function hostedText(server: HostedView, now: Date): string {
  const { resource_limits: limits, usage, last_crash, volumes, environment } = server;
  const notes = hostedNotes(server, now);
  const rows: [string, string | null][] = [
    ['name', server.name],
    ['id', server.id],
    ['project', server.project],
    ['status', notes === '' ? statusText(server.status) : `${statusText(server.status)}: ${notes}`],
    ['uptime', uptimeText(server) || null],
    ['restarts', String(server.restart_count)],
    ['last crash', last_crash === null ? null : `${localTime(last_crash.at)}: ${last_crash.reason}`],
    ['provider', server.provider ?? server.requested_provider],
    ['container', server.provider_workspace_id],
    ['image', server.image],
    ['command', server.command],
    [
      'arguments',
      server.args.length === 0 ? null : server.args.map((each) => JSON.stringify(each)).join(' '),
    ],
    ['MCP', server.stdio_bridge ? 'over stdin and stdout' : `over HTTP, port ${server.port}${server.path}`],
    ['address', endpointOf(server)],
    ['restart', server.restart_policy],
    ['network', server.network ? 'yes' : server.port === null ? 'no' : 'yes (by its port)'],
    ['environment', environment.length === 0 ? null : `${environment.join(', ')} (values are not shown)`],
    ['volumes', volumes.length === 0 ? null : volumes.join(', ')],
    ['kept in', server.volume_names?.length ? server.volume_names.join(', ') : null],
    ['limits', `${limits.cpu} CPU, ${limits.memory} memory, ${limits.disk} disk, ${limits.pids} processes`],
    ['usage', usage === null ? null : usageText(usage)],
    ['tools', server.tool_count === null ? null : String(server.tool_count)],
  ];
  return table(rows.flatMap(([what, value]) => (value === null ? [] : [[what, oneLine(value)]])));
}

/** Its MCP endpoint on this machine; null if there is none or it is unknown. */
export function endpointOf({ url, path, stdio_bridge }: HostedView): string | null {
  return url === null || stdio_bridge ? url : `${url}${path}`;
}

function usageText({
  cpu_percent,
  memory_bytes,
  memory_limit_bytes,
  disk_bytes,
}: NonNullable<HostedView['usage']>): string {
  const parts = [
    ...(cpu_percent === null ? [] : [`${cpu_percent.toFixed(1)} % of a core`]),
    `${megabytes(memory_bytes)} of ${megabytes(memory_limit_bytes)} memory`,
    ...(disk_bytes === null ? [] : [`${megabytes(disk_bytes)} disk`]),
  ];
  return parts.join(', ');
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}

/** Empty if the server is not running. */
export function uptimeText({ uptime_seconds: seconds }: Pick<HostedView, 'uptime_seconds'>): string {
  if (seconds === null) return '';
  if (seconds < 120) return `up ${Math.floor(seconds)} s`;
  if (seconds < 2 * 3_600) return `up ${Math.floor(seconds / 60)} min`;
  return seconds < 2 * 86_400
    ? `up ${Math.floor(seconds / 3_600)} h`
    : `up ${Math.floor(seconds / 86_400)} days`;
}
