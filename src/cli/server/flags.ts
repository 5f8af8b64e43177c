import { resolve } from 'node:path';
import type { ServerView } from '../../api/views.ts';
import type { ServerEntry } from '../../config/entry.ts';
import { usageError } from '../exit.ts';

/** How a server is reached, by a command or at an address. */
export type Reach = Pick<ServerEntry, 'command' | 'args' | 'env' | 'cwd' | 'url' | 'headers'>;

/** What a server can be given on the command line. */
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
  /** What is to be as if it had never been said. */
  unset?: string[];
}

/** Settings that go back to what holds for every server, as users write them. */
const settings = {
  group: 'group',
  replicas: 'replicas',
  labels: 'labels',
  concurrency: 'concurrency',
  isolation: 'isolation',
  era: 'era',
  'timeout-ms': 'timeout_ms',
  'max-timeout-ms': 'max_timeout_ms',
  'idle-stop-ms': 'idle_stop_ms',
  startup: 'startup',
  prefix: 'prefix',
  tools: 'tools',
} as const;

export const unsettable = [
  ...Object.keys(settings),
  'description',
  'cwd',
  'env.NAME',
  'header.NAME',
  'label.KEY',
];

/** A new server as the API takes it. */
export function newServer(
  name: string,
  command: string[],
  flags: ServerFlags & { disabled?: boolean },
): object {
  if (command.length === 0 && flags.endpoint === undefined) {
    throw usageError(
      `Say how the server is reached: switchboard server add ${name} -- <command> [arguments], or --endpoint <url>.`,
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

/** What is to change of a server, as the API takes it: parts of what is there are kept. */
export function serverChanges(server: ServerView, command: string[], flags: ServerChangeFlags): object {
  const { unset = [], name } = flags;
  for (const what of unset) checkUnset(what);
  checkReach(command, flags, server);
  const config = withoutParts(reachOf(keptReach(server, command, flags), command, flags), unset);
  const labels = without({ ...server.labels, ...flags.label }, unset, 'label.');
  const transport = command.length > 0 ? 'stdio' : flags.endpoint === undefined ? undefined : 'http';
  const newTransport = flags.transport ?? (transport === 'http' ? keptTransport(server) : transport);
  const removed = unset.filter((what) => what in settings) as (keyof typeof settings)[];
  const changes = {
    ...(name === undefined ? {} : { name }),
    ...(newTransport === undefined || newTransport === server.transport ? {} : { transport: newTransport }),
    ...(isSame(config, server.config) ? {} : { config }),
    ...(isSame(labels, server.labels) ? {} : { labels }),
    ...Object.fromEntries(removed.map((what) => [settings[what], null])),
    ...(unset.includes('description') ? { description: null } : {}),
    ...settingsOf(flags),
  };
  if (Object.keys(changes).length > 0) return changes;
  throw usageError('Nothing to change: what was given is so already. See: switchboard server set --help');
}

/** Options that need the other kind of server. */
function checkReach(command: string[], flags: ServerFlags, present?: ServerView): void {
  if (command.length > 0 && flags.endpoint !== undefined) {
    throw usageError('A server is either started by a command or reached at an endpoint: give one of them.');
  }
  const isStarted = command.length > 0 || (flags.endpoint === undefined && present?.transport === 'stdio');
  const misplaced = isStarted
    ? [flags.header && '--header', flags.transport && '--transport']
    : [flags.env && '--env', flags.cwd !== undefined && '--cwd'];
  const option = misplaced.find((candidate) => typeof candidate === 'string');
  if (option === undefined) return;
  const other = isStarted ? 'reached at an --endpoint' : 'started by a command';
  throw usageError(`${option} is for a server that is ${other}.`);
}

/** What stays of how a server is reached. */
function keptReach(server: ServerView, command: string[], { endpoint }: ServerFlags): Reach {
  const config = server.config as Reach;
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

/** Relative to where the user is, as paths on a command line are: Switchboard may run elsewhere. */
function absolute(path: string): string {
  return path.startsWith('${') ? path : resolve(path);
}

function pathOrName(command: string): string {
  return command.includes('/') ? absolute(command) : command;
}

function settingsOf(flags: ServerFlags): object {
  const { description, group, replicas, concurrency, isolation, era, startup, prefix } = flags;
  const given = {
    description: description === '' ? null : description,
    group,
    replicas,
    concurrency,
    isolation,
    era,
    timeout_ms: flags.timeoutMs,
    max_timeout_ms: flags.maxTimeoutMs,
    idle_stop_ms: flags.idleStopMs,
    startup,
    prefix,
    tools: toolChoice(flags),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function toolChoice({ allowTool: allow, denyTool: deny }: ServerFlags): object | undefined {
  if (allow === undefined && deny === undefined) return undefined;
  return { ...(allow === undefined ? {} : { allow }), ...(deny === undefined ? {} : { deny }) };
}

function checkUnset(what: string): void {
  if (unsettable.includes(what) && !/^(env|header|label)\./.test(what)) return;
  if (/^(env|header|label)\../.test(what)) return;
  throw usageError(`There is no "${what}" to unset. There are: ${unsettable.join(', ')}.`);
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
