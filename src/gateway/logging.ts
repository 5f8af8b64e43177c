import { SwitchboardError } from '../errors.ts';
import { inWords } from '../json.ts';
import { parseBounded } from '../protocol/bounded-parse.ts';
import { bytesAt, type Message } from '../protocol/message.ts';
import type { Connection } from '../upstreams/connection.ts';
import type { Client } from '../upstreams/request.ts';
import type { Server } from '../upstreams/server.ts';
import { allWithin } from './discovery.ts';
import type { Scope } from './scope.ts';

/** How long a call waits for servers to apply a level. */
const SET_LEVEL_MS = 1_000;

/** From the most to the least verbose. */
export const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

export function readLevel(message: Message): string {
  const { level } = paramsOf(message);
  if (!isLevel(level)) {
    throw new SwitchboardError('invalid_params', `params.level must be one of ${levels.join(', ')}.`);
  }
  return level;
}

export function isLevel(level: unknown): level is string {
  return typeof level === 'string' && levels.includes(level);
}

function mostVerbose(wanted: Iterable<string | undefined>): string | undefined {
  let lowest = levels.length;
  for (const logLevel of wanted) {
    if (logLevel !== undefined) lowest = Math.min(lowest, levels.indexOf(logLevel));
  }
  return levels[lowest];
}

export function isWanted(message: Message, wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  const { level } = paramsOf(message);
  return levels.indexOf(inWords(level)) >= levels.indexOf(wanted);
}

function paramsOf({ bytes, params }: Message): Record<string, unknown> {
  return params === undefined
    ? {}
    : (parseBounded(bytesAt(bytes, params).toString()) as Record<string, unknown>);
}

interface LogClient extends Client {
  readonly scope: Scope;
  readonly logLevel: string | undefined;
}

/**
 * The log levels of legacy servers. A server gets the most verbose level that any of its clients wants, and each client gets only
 * what it wants. Modern servers get a level with every request.
 */
export class LogLevels {
  private readonly viewers: (server: Server) => readonly LogClient[];
  private readonly wantedByModern = new WeakMap<Server, string>();

  constructor(viewers: (server: Server) => readonly LogClient[]) {
    this.viewers = viewers;
  }

  /** Resolves when the server has applied its level. */
  apply(server: Server, connection: Connection): Promise<void> {
    const viewers = this.viewers(server);
    const owner = viewers.find((viewer) => viewer === connection.owner);
    if (owner !== undefined) return connection.setLogLevel(owner.logLevel);
    const wanted = viewers.map(({ logLevel }) => logLevel);
    return connection.setLogLevel(mostVerbose([this.wantedByModern.get(server), ...wanted]));
  }

  /** Call when a legacy client has changed its level or disconnected. */
  changed(client: LogClient): void {
    for (const server of client.scope.servers()) {
      for (const connection of server.connectionsOf(client)) void this.apply(server, connection);
    }
  }

  /** For a modern client. Resolves when the servers have applied at least this level; undefined if they already have. */
  raise(scope: Scope, level: string): Promise<void> | undefined {
    const pending: Promise<void>[] = [];
    for (const server of scope.servers()) {
      const before = this.wantedByModern.get(server);
      const wanted = mostVerbose([before, level])!;
      if (before === wanted) continue;
      this.wantedByModern.set(server, wanted);
      for (const connection of server.connections()) pending.push(this.apply(server, connection));
    }
    // A slow server must not delay calls to others.
    return pending.length === 0 ? undefined : allWithin(pending, SET_LEVEL_MS);
  }
}
