import { maskCredentials } from '../config/credentials.ts';
import { parseLimits } from '../config/limits.ts';
import type { ResourceUsage } from '../hosting/driver.ts';
import type { StatusReport } from '../hosting/server-state.ts';
import { historyOf } from '../projects/hosted-rows.ts';
import type { Hosting } from '../projects/hosting/hosting.ts';
import type { RegisteredServer } from '../projects/hosting/registered.ts';
import type { HostedView } from './hosted-views.ts';

const running = new Set<HostedView['status']>(['ready', 'unresponsive']);
const restarting = new Set<HostedView['status']>(['starting', 'restarting', 'backing_off', 'waiting']);
const worrying = new Set<HostedView['status']>(['unresponsive', 'backing_off', 'waiting', 'failed']);

/** Only for a single server. */
interface Details {
  usage?: ResourceUsage | undefined;
  volumes?: string[] | undefined;
}

export function hostedViewOf(
  { row, project }: RegisteredServer,
  hosting: Hosting,
  { usage, volumes }: Details = {},
): HostedView {
  const { mcp_config, resource_limits } = row;
  const { environment, provider: requested_provider, ...config } = mcp_config;
  const now = statusOf(row, hosting.supervisor?.status(row.id));
  const { status, history } = now;
  // A ready server has a reason if its current settings could not be applied.
  const isBehind = status === 'ready' && now.reason !== null;
  const isWorrying = worrying.has(status) || history.step > 0 || isBehind;
  return {
    ...{
      id: row.id,
      project: project.name,
      project_id: project.id,
      name: row.name,
      ...maskCredentials(config),
    },
    environment: Object.keys(environment),
    resource_limits,
    provider: now.provider,
    requested_provider,
    provider_workspace_id: now.instanceId,
    lifecycle: 'persistent',
    enabled: row.enabled,
    status,
    container_status: running.has(status) ? 'running' : restarting.has(status) ? 'restarting' : 'stopped',
    error: now.reason,
    next_try: now.nextTry,
    uptime_seconds: running.has(status) ? secondsSince(now.startedAt) : null,
    restart_count: history.restarts,
    last_crash: history.lastCrash,
    health: isWorrying ? 'warning' : 'ok',
    url: now.url,
    usage: usage === undefined ? null : usageView(usage, resource_limits),
    volume_names: volumes ?? null,
    tool_count: project.servers.get(row.name)?.offer?.tools.length ?? null,
    hosted_here: hosting.runsHere,
    version: row.version,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

/** The hosting process asks its supervisor; others read the row. */
function statusOf(row: RegisteredServer['row'], known: StatusReport | undefined) {
  if (known !== undefined) {
    const { status, reason = null, provider = null, instanceId = null, url = null, history } = known;
    const nextTry = known.nextTry?.toISOString() ?? null;
    const startedAt = known.startedAt?.toISOString() ?? null;
    return { status, reason, provider, instanceId, url, history, nextTry, startedAt };
  }
  const { reason, next_try, started_at, url } = (row.metadata ?? {}) as Record<string, unknown>;
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  return {
    status: row.status as HostedView['status'],
    reason: text(reason),
    provider: row.provider as HostedView['provider'],
    instanceId: row.provider_workspace_id,
    url: text(url),
    history: historyOf(row.metadata),
    nextTry: text(next_try),
    startedAt: text(started_at),
  };
}

function usageView(
  { cpuPercent, memoryBytes, diskBytes }: ResourceUsage,
  limits: HostedView['resource_limits'],
): HostedView['usage'] {
  const parsed = parseLimits(limits);
  return {
    cpu_percent: cpuPercent === undefined ? null : Math.round(cpuPercent * 10) / 10,
    memory_bytes: Math.round(memoryBytes),
    memory_limit_bytes: 'limits' in parsed ? parsed.limits.memoryBytes : 0,
    disk_bytes: diskBytes === undefined ? null : Math.round(diskBytes),
  };
}

function secondsSince(time: string | null): number | null {
  return time === null ? null : Math.max(0, Math.round((Date.now() - Date.parse(time)) / 100) / 10);
}
