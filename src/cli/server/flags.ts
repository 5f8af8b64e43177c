import { resolve } from 'node:path';
import type { ServerView } from '../../api/views.ts';
import { settingKeys } from '../../config/choices.ts';
import type { ServerEntry } from '../../config/entry.ts';
import { usageError } from '../exit.ts';

export type Reach = Pick<ServerEntry, 'command' | 'args' | 'env' | 'cwd' | 'url' | 'headers'>;

export interface ServerFlags {
  endpoint?: string;
  transport?: 'http' | 'sse';
  header?: Record<string, string>;
  env?: Record<string, string>;
  cwd?: string;
  description?: string;
  group?: string;
  replicas?: number;
  label?: Record<string, string>;
  concurrency?: number;
  isolation?: 'shared' | 'session';
  era?: 'auto' | 'legacy' | 'modern';
  timeoutMs?: number;
  maxTimeoutMs?: number;
  idleStopMs?: number;
  startup?: 'lazy' | 'sequential' | 'parallel';
  prefix?: string;
  allowTool?: string[];
  denyTool?: string[];
}

export interface ServerChangeFlags extends ServerFlags {
  name?: string;
  /** Settings to reset to their defaults. */
  unset?: string[];
}

/** By their names on the command line, such as timeout-ms. */
const settings: ReadonlyMap<string, string> = new Map(
  Object.values(settingKeys).map((key) => [key.replaceAll('_', '-'), key]),
);

export const unsettable = [...settings.keys(), 'description', 'cwd', 'env.NAME', 'header.NAME', 'label.KEY'];

export function newServer(
  name: string,
  command: string[],
  flags: ServerFlags & { disabled?: boolean },
): object {
  if (command.length === 0 && flags.endpoint === undefined) {
    throw usageError(
      `A server needs a command or an endpoint: use switchboard server add ${name} -- <command> [arguments], or --endpoint <url>.`,
    );
  }
  checkReach(command, flags);
  return {
    name,
    transport: command.length > 0 ? 'stdio' : (flags.transport ?? 'http'),
    config: reachOf({}, command, flags),
    ...settingsOf(flags),
    ...(flags.label === undefined ? {} : { labels: flags.label }),
    ...(flags.disabled ? { enabled: false } : {}),
  };
}

/** The API replaces `config` as a whole, so unchanged parts are included. */
export function serverChanges(server: ServerView, command: string[], flags: ServerChangeFlags): object {
  const { unset = [], name } = flags;
  for (const what of unset) checkUnset(what);
  checkReach(command, flags, server);
  const config = withoutParts(reachOf(keptReach(server, command, flags), command, flags), unset);
  const labels = without({ ...server.labels, ...flags.label }, unset, 'label.');
  const transport = command.length > 0 ? 'stdio' : flags.endpoint === undefined ? undefined : 'http';
  const newTransport = flags.transport ?? (transport === 'http' ? keptTransport(server) : transport);
  const removed = unset.flatMap((what) => settings.get(what) ?? []);
  const changes = {
    ...(name === undefined ? {} : { name }),
    ...(newTransport === undefined || newTransport === server.transport ? {} : { transport: newTransport }),
    ...(isSame(config, server.config ?? {}) ? {} : { config }),
    ...(isSame(labels, server.labels) ? {} : { labels }),
    ...Object.fromEntries(removed.map((key) => [key, null])),
    ...(unset.includes('description') ? { description: null } : {}),
    ...settingsOf(flags),
  };
  if (Object.keys(changes).length > 0) return changes;
  throw usageError(
    'Nothing to change: the server has these settings already. See: switchboard server set --help',
  );
}

/** Rejects options of the other kind of server. */
function checkReach(command: string[], flags: ServerFlags, present?: ServerView): void {
  if (command.length > 0 && flags.endpoint !== undefined) {
    throw usageError('A server has either a command or an endpoint: use one of them.');
  }
  const isStarted = command.length > 0 || (flags.endpoint === undefined && present?.transport === 'stdio');
  const misplaced = isStarted
    ? [flags.header && '--header', flags.transport && '--transport']
    : [flags.env && '--env', flags.cwd !== undefined && '--cwd'];
  const option = misplaced.find((candidate) => typeof candidate === 'string');
  if (option === undefined) return;
  throw usageError(`${option} is only for servers with ${isStarted ? 'an --endpoint' : 'a command'}.`);
}

function keptReach(server: ServerView, command: string[], { endpoint }: ServerFlags): Reach {
  const config = (server.config ?? {}) as Reach;
  if (command.length > 0 && config.command === undefined) return {};
  return endpoint !== undefined && config.url === undefined ? {} : config;
}

function keptTransport({ transport }: ServerView): 'http' | 'sse' {
  return transport === 'sse' ? 'sse' : 'http';
}

function reachOf(kept: Reach, words: string[], { endpoint, header, env, cwd }: ServerFlags): Reach {
  const [command, ...args] = words;
  return {
    ...kept,
    ...(command === undefined ? {} : { command: pathOrName(command), args }),
    ...(endpoint === undefined ? {} : { url: endpoint }),
    ...(env === undefined ? {} : { env: { ...kept.env, ...env } }),
    ...(header === undefined ? {} : { headers: { ...kept.headers, ...header } }),
    ...(cwd === undefined ? {} : { cwd: absolute(cwd) }),
  };
}

/** Relative to the current folder: Switchboard may run in another one. */
function absolute(path: string): string {
  return path.startsWith('${') ? path : resolve(path);
}

function pathOrName(command: string): string {
  return command.includes('/') ? absolute(command) : command;
}

function settingsOf(flags: ServerFlags): object {
  const { description, ...rest } = flags;
  const given = { ...rest, tools: toolChoice(flags) } as Record<string, unknown>;
  const entries = Object.entries(settingKeys).map(([flag, key]) => [key, given[flag]]);
  return Object.fromEntries(
    [['description', description === '' ? null : description], ...entries].filter(
      ([, value]) => value !== undefined,
    ),
  );
}

function toolChoice({ allowTool: allow, denyTool: deny }: ServerFlags): object | undefined {
  if (allow === undefined && deny === undefined) return undefined;
  return { ...(allow === undefined ? {} : { allow }), ...(deny === undefined ? {} : { deny }) };
}

function checkUnset(what: string): void {
  if (unsettable.includes(what) && !/^(env|header|label)\./.test(what)) return;
  if (/^(env|header|label)\../.test(what)) return;
  throw usageError(`"${what}" cannot be unset. Use one of ${unsettable.join(', ')}.`);
}

function withoutParts(reach: Reach, unset: string[]): Reach {
  const { cwd, env, headers, ...rest } = reach;
  return {
    ...rest,
    ...(env === undefined ? {} : { env: without(env, unset, 'env.') }),
    ...(headers === undefined ? {} : { headers: without(headers, unset, 'header.') }),
    ...(cwd === undefined || unset.includes('cwd') ? {} : { cwd }),
  };
}

function without(values: Record<string, string>, unset: string[], start: string): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !unset.includes(start + name)));
}

function isSame(left: object, right: object): boolean {
  const text = (value: object) => JSON.stringify(value, sortedKeys);
  return text(left) === text(right);
}

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)));
}
