import { SwitchboardError } from '../errors.ts';

export type ServerState =
  | 'idle'
  | 'starting'
  | 'ready'
  | 'degraded'
  | 'backing_off'
  | 'breaker_open'
  | 'failed'
  | 'stopped';

/** One running instance of a server. */
interface ReplicaView {
  /** Counted from 1. */
  replica: number;
  state: ServerState;
  since: string;
  error: string | null;
  /** When it is tried again: an ISO time. */
  next_try: string | null;
  in_flight: number;
  queued: number;
  /** Of the calls that wait now. */
  longest_wait_ms: number;
  restarts: number;
}

/** A server as the API shows it. */
export interface ServerView {
  name: string;
  transport: 'stdio' | 'sse' | 'http';
  group: string | null;
  labels: Record<string, string>;
  startup: 'lazy' | 'sequential' | 'parallel';
  state: ServerState;
  /** Since when it is in this state. */
  since: string;
  error: string | null;
  next_try: string | null;
  tool_count: number | null;
  resource_count: number | null;
  prompt_count: number | null;
  in_flight: number;
  queued: number;
  longest_wait_ms: number;
  restarts: number;
  replicas: ReplicaView[];
}

/** A server, or one of its replicas, went from one state to another. */
export interface ServerEvent {
  time: string;
  /** The server after it. */
  server: ServerView;
  /** The replica that changed, where it was one of several. */
  replica: number | null;
  from: ServerState;
}

/** What the API needs to know of the rest of the program. */
export interface ServerDirectory {
  servers(): ServerView[];
  /** The last lines of a server's log; undefined for a server that does not exist. */
  log(name: string): readonly string[] | undefined;
  /** Tells of every transition until the returned function is called. */
  subscribe(listener: (event: ServerEvent) => void): () => void;
}

/** Answers a path below …/servers; undefined where it is none of these. */
export function answerServers(path: string, directory: ServerDirectory): object | undefined {
  if (path === '/servers') return { servers: directory.servers() };
  const match = /^\/servers\/([^/]+)(\/logs)?$/.exec(path);
  if (match === null) return undefined;
  const name = decoded(match[1]!);
  const server = directory.servers().find((candidate) => candidate.name === name);
  if (server === undefined) throw new SwitchboardError('not_found', `There is no server "${name}".`);
  return match[2] === undefined ? server : { lines: directory.log(server.name) ?? [] };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
