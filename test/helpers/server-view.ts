import type { ServerView } from '../../src/api/views.ts';

type Replica = ServerView['replicas'][number];

/** For texts that depend on the time. */
export const noon = new Date('2030-01-01T12:00:00.000Z');

export function afterNoon(milliseconds: number): string {
  return new Date(noon.getTime() + milliseconds).toISOString();
}

/** A healthy server with overrides. */
export function serverView(otherwise: Partial<ServerView> = {}): ServerView {
  return {
    id: null,
    project: 'default',
    source: 'file',
    product_id: null,
    product: null,
    name: 'github',
    description: null,
    transport: 'http',
    config: { url: 'https://example.test/mcp' },
    enabled: true,
    group: null,
    replica_count: 1,
    labels: {},
    concurrency: 32,
    isolation: 'shared',
    era: 'auto',
    timeout_ms: 30_000,
    max_timeout_ms: 3_600_000,
    idle_stop_ms: 0,
    startup: 'lazy',
    prefix: null,
    tools: null,
    state: 'ready',
    since: noon.toISOString(),
    error: null,
    next_try: null,
    warning: null,
    tool_count: 3,
    resource_count: 2,
    prompt_count: 1,
    in_flight: 0,
    queued: 0,
    longest_wait_ms: 0,
    restarts: 0,
    replicas: [replicaView(1)],
    version: null,
    created_at: null,
    updated_at: null,
    ...otherwise,
  };
}

export function replicaView(replica: number, otherwise: Partial<Replica> = {}): Replica {
  return {
    replica,
    state: 'ready',
    since: noon.toISOString(),
    error: null,
    next_try: null,
    in_flight: 0,
    queued: 0,
    longest_wait_ms: 0,
    restarts: 0,
    ...otherwise,
  };
}
