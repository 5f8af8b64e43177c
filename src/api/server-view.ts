import { MASK, maskCredentials, type ServerTransport } from '../config.ts';
import type { ListedServer } from '../projects/listed-server.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { Condition } from '../upstreams/condition.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Server } from '../upstreams/server.ts';
import type { ServerEvent, ServerState, ServerView } from './views.ts';

export function serverViewOf(project: LiveProject, listed: ListedServer): ServerView {
  const { config, row, hosted, isEnabled } = listed;
  const server = project.servers.get(config.name);
  return {
    id: row?.id ?? hosted?.id ?? null,
    project: project.name,
    source: sourceOf(listed),
    product_id: row?.product_id ?? null,
    product: (row && project.productOf(row)) ?? null,
    name: config.name,
    description: row?.description || null,
    transport: config.transport.type,
    config:
      row === undefined
        ? fileConfigView(config.transport)
        : maskCredentials(row.config as NonNullable<ServerView['config']>),
    enabled: isEnabled,
    group: config.group ?? null,
    replica_count: config.replicas,
    labels: config.labels,
    concurrency: config.concurrency,
    isolation: config.isolation,
    era: config.era,
    timeout_ms: config.timeoutMs,
    max_timeout_ms: config.maxTimeoutMs,
    idle_stop_ms: config.idleStopMs,
    startup: config.startup,
    prefix: config.prefix ?? null,
    tools: config.tools ?? null,
    ...(server === undefined ? notRunning(project, listed) : running(server)),
    version: row?.version ?? null,
    created_at: row?.created_at.toISOString() ?? null,
    updated_at: row?.updated_at.toISOString() ?? null,
  };
}

/** In the order of the project's list. */
export function serverViewsOf(project: LiveProject): ServerView[] {
  return project.listed.map((listed) => serverViewOf(project, listed));
}

export function stateEvent(
  project: LiveProject,
  server: Server,
  replica: Replica,
  from: ServerState,
): ServerEvent {
  return {
    time: new Date().toISOString(),
    server: viewOfServer(project, server),
    replica: server.replicas.length === 1 ? null : replica.number,
    from,
  };
}

/** For a change of a server's offer without a change of state. */
export function offerEvent(project: LiveProject, server: Server): ServerEvent {
  const view = viewOfServer(project, server);
  return { time: new Date().toISOString(), server: view, replica: null, from: view.state };
}

export function startEvent(project: LiveProject, server: Server): ServerEvent {
  return { ...offerEvent(project, server), from: 'disabled' };
}

/** Also for a removed server while it stops. */
function viewOfServer(project: LiveProject, server: Server): ServerView {
  const { name, config } = server;
  const listed = project.listed.find((candidate) => candidate.name === name);
  const view = serverViewOf(project, listed ?? { name, config, row: undefined, isEnabled: false });
  return { ...view, ...running(server) };
}

function running({ condition, warning, offer, replicas }: Server) {
  const now = Date.now();
  const each = replicas.map((replica) => replicaView(replica, now));
  const sum = (key: 'in_flight' | 'queued' | 'restarts') =>
    each.reduce((total, replica) => total + replica[key], 0);
  return {
    ...conditionView(condition),
    warning: warning ?? null,
    tool_count: offer?.tools.length ?? null,
    resource_count: offer?.resources.length ?? null,
    prompt_count: offer?.prompts.length ?? null,
    in_flight: sum('in_flight'),
    queued: sum('queued'),
    longest_wait_ms: Math.max(...each.map(({ longest_wait_ms }) => longest_wait_ms)),
    restarts: sum('restarts'),
    replicas: each,
  };
}

function notRunning({ row: project }: LiveProject, { row, isEnabled, problem }: ListedServer) {
  return {
    state: isEnabled ? ('failed' as const) : ('disabled' as const),
    since: (row?.updated_at ?? project.updated_at).toISOString(),
    error: problem ?? null,
    next_try: null,
    warning: null,
    tool_count: null,
    resource_count: null,
    prompt_count: null,
    in_flight: 0,
    queued: 0,
    longest_wait_ms: 0,
    restarts: 0,
    replicas: [],
  };
}

function sourceOf({ row, hosted }: ListedServer): ServerView['source'] {
  if (hosted !== undefined) return 'hosted';
  if (row === undefined) return 'file';
  return row.product_id === null ? 'api' : 'product';
}

/** Configuration files may contain secrets, so only values that are a variable reference are shown. */
function fileConfigView(transport: ServerTransport): NonNullable<ServerView['config']> {
  const masked = (values: Record<string, string>) =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, /^\$\{[^}]*\}$/.test(value) ? value : MASK]),
    );
  if (transport.type === 'stdio') {
    const { command, args, env, cwd } = transport;
    return { ...maskCredentials({ command, args }), env: masked(env), cwd };
  }
  if (transport.type === 'hosted') return { hosted: transport.id };
  return { ...maskCredentials({ url: transport.url }), headers: masked(transport.headers) };
}

function replicaView(replica: Replica, now: number): ServerView['replicas'][number] {
  const { number, connections } = replica;
  let [inFlight, queued, longestWait] = [0, 0, 0];
  for (const slots of connections.slots()) {
    inFlight += slots.used;
    queued += slots.queued;
    longestWait = Math.max(longestWait, slots.longestWaitMs(now));
  }
  return {
    replica: number,
    ...conditionView(connections.condition),
    in_flight: inFlight,
    queued,
    longest_wait_ms: longestWait,
    restarts: connections.restarts,
  };
}

function conditionView({ state, since, reason, nextTry }: Condition) {
  return {
    state,
    since: new Date(since).toISOString(),
    error: reason?.message ?? null,
    next_try: nextTry === undefined ? null : new Date(nextTry).toISOString(),
  };
}
