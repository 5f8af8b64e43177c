import type { ServerEvent, ServerState, ServerView } from '../api/servers.ts';
import type { Condition } from '../upstreams/condition.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Server } from '../upstreams/server.ts';

/** A server as everybody outside sees it. */
export function viewOf({ config, condition, offer, replicas }: Server): ServerView {
  const now = Date.now();
  const each = replicas.map((replica) => replicaView(replica, now));
  const sum = (key: 'in_flight' | 'queued' | 'restarts') =>
    each.reduce((total, replica) => total + replica[key], 0);
  return {
    name: config.name,
    transport: config.transport.type,
    group: config.group ?? null,
    labels: config.labels,
    startup: config.startup,
    ...conditionView(condition),
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

/** What is told when a replica has gone from one state to another. */
export function eventOf(server: Server, replica: Replica, from: ServerState): ServerEvent {
  return {
    time: new Date().toISOString(),
    server: viewOf(server),
    replica: server.replicas.length === 1 ? null : replica.number,
    from,
  };
}

/** The same for a server whose state is as it was, but not what it offers. */
export function unchangedEvent(server: Server): ServerEvent {
  const view = viewOf(server);
  return { time: new Date().toISOString(), server: view, replica: null, from: view.state };
}

function replicaView(replica: Replica, now: number): ServerView['replicas'][number] {
  const { number, shown, restarts } = replica;
  let [inFlight, queued, longestWait] = [0, 0, 0];
  for (const { slots } of replica.connections()) {
    inFlight += slots.used;
    queued += slots.queued;
    longestWait = Math.max(longestWait, slots.longestWaitMs(now));
  }
  return {
    replica: number,
    ...conditionView(shown),
    in_flight: inFlight,
    queued,
    longest_wait_ms: longestWait,
    restarts,
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
