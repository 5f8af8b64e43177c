import { once } from 'node:events';
import { resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import type { ServerEvent, ServerView } from '../../api/views.ts';
import { type App, type AppOptions, startApp, type Waiting } from '../../app.ts';
import { home } from '../../home.ts';
import { DEFAULT_PROJECT } from '../defaults.ts';
import { onStopSignals, usageError } from '../exit.ts';
import { findConfig } from '../input.ts';
import { complain, print, printJsonLine } from '../output.ts';
import { eventNotes, marks, stateColumn, subjectOf } from '../server/text.ts';
import { banner, type Listening } from './banner.ts';
import { onParentGone } from './parent.ts';

export interface UpFlags {
  config?: string;
  host: string;
  port: number;
  auth?: boolean;
  publicUrl?: string;
  tlsCert?: string;
  tlsKey?: string;
  trustedProxy?: string[];
  startup?: AppOptions['startup'];
  onStartFailure?: AppOptions['onStartFailure'];
  exitWhenIdle?: number;
  /** False with --no-database. */
  database?: boolean;
  json?: boolean;
}

/**
 * Large messages are buffers outside the heap. By default V8 collects the whole heap after every 20 MB of them, which took
 * half of the CPU time of 1 MB results; with this flag they count like other memory.
 */
const COUNT_BUFFERS_LIKE_HEAP = '--external-memory-accounted-in-global-limit';

export async function up(flags: UpFlags): Promise<void> {
  setFlagsFromString(COUNT_BUFFERS_LIKE_HEAP);
  const configPath = findConfig(flags.config);
  const authentication = authenticationOf(flags);
  const show = flags.json ? jsonReporter() : textReporter();
  const stop = new AbortController();
  const kill = new AbortController();
  onStopSignals(
    () => stop.abort(),
    () => {
      // A child that ignores the end of its input and SIGTERM must not outlive us.
      kill.abort();
      process.exit(130);
    },
  );

  // A Switchboard started for a bridge outlives it.
  if (flags.exitWhenIdle === undefined) onParentGone(() => stop.abort());

  // The reader of our output may exit first.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
  // A bug in one request must not end the others.
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error) => show.warning(`internal error: ${(error as Error)?.stack ?? error}`));
  }
  const app = await startUnlessStopped(
    {
      signal: stop.signal,
      killSignal: kill.signal,
      configPath,
      host: flags.host,
      port: flags.port,
      home: home(),
      database: databaseFor(flags),
      ...authentication,
      ...(flags.startup === undefined ? {} : { startup: flags.startup }),
      ...(flags.onStartFailure === undefined ? {} : { onStartFailure: flags.onStartFailure }),
      ...(flags.exitWhenIdle === undefined ? {} : { exitWhenIdleMs: flags.exitWhenIdle * 1_000 }),
    },
    {
      progressed: (message) => show.progress(message),
      listening: (url, access) => show.listening({ ...access, url, config: configPath }),
      serverChanged: (event) => show.server(event),
      configApplied: (...changes) => show.configured(...changes),
      warned: (message) => show.warning(message),
      idle: () => stop.abort(),
      waiting: (what) => show.waiting(what),
    },
  );
  if (app === undefined) return;
  showServers(app.servers(), show);
  if (!stop.signal.aborted) await once(stop.signal, 'abort');
  show.stopping();
  await app.stop();
}

/** Those that are not idle show up when their state changes. */
function showServers(servers: ServerView[], show: Reporter): void {
  if (servers.length === 0) show.noServers();
  for (const server of servers) if (server.state === 'idle') show.server(currentStateOf(server));
}

/** The URL comes from the environment, not from a flag, because it contains a password. */
function databaseFor({ database }: UpFlags): AppOptions['database'] {
  const { DATABASE_URL: url = '', SWITCHBOARD_SECRET_KEY: secretKey } = process.env;
  if (database === false || url === 'none') return { mode: 'none' };
  return url === '' ? { mode: 'embedded', secretKey } : { mode: 'server', url, secretKey };
}

/** Files are relative to the current folder. */
function authenticationOf({ auth, publicUrl, tlsCert, tlsKey, trustedProxy }: UpFlags): Partial<AppOptions> {
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw usageError('--tls-cert and --tls-key belong together: name the certificate and its key.');
  }
  return {
    ...(auth === undefined ? {} : { auth }),
    ...(publicUrl === undefined ? {} : { publicUrl }),
    ...(tlsCert === undefined || tlsKey === undefined
      ? {}
      : { tls: { cert: resolve(tlsCert), key: resolve(tlsKey) } }),
    ...(trustedProxy === undefined ? {} : { trustedProxies: trustedProxy }),
  };
}

/** Undefined if stopped during the start. */
async function startUnlessStopped(...start: Parameters<typeof startApp>): Promise<App | undefined> {
  try {
    return await startApp(...start);
  } catch (error) {
    if (start[0].signal?.aborted) return undefined;
    throw error;
  }
}

interface Reporter {
  progress(message: string): void;
  listening(address: Listening): void;
  noServers(): void;
  server(event: ServerEvent): void;
  configured(started: string[], changed: string[], stopped: string[]): void;
  warning(message: string): void;
  stopping(): void;
  waiting(what: Waiting): void;
}

function jsonReporter(): Reporter {
  const event = (value: object) => printJsonLine(value);
  return {
    progress: (message) => event({ event: 'progress', message }),
    listening: ({ url, publicUrl = null, auth, config }) =>
      event({
        ...{ event: 'listening', url: `${url}/mcp`, base_url: url, public_url: publicUrl, auth },
        ...{ pid: process.pid, config },
      }),
    noServers() {},
    server: (change) => event(serverEvent(change)),
    configured: (started, changed, stopped) => event({ event: 'configuration', started, changed, stopped }),
    warning: (message) => event({ event: 'warning', message }),
    stopping: () => event({ event: 'stopping' }),
    waiting: ({ calls, servers, limitMs }) => event({ event: 'waiting', calls, servers, limit_ms: limitMs }),
  };
}

function currentStateOf(server: ServerView): ServerEvent {
  return { time: new Date().toISOString(), server, replica: null, from: server.state };
}

function serverEvent(event: ServerEvent): object {
  const { server, replica, from } = event;
  const { state, since, error, next_try } = subjectOf(event);
  return {
    event: 'server',
    project: server.project,
    name: server.name,
    replica,
    from,
    state,
    since,
    error,
    next_try,
    tools: server.tool_count,
    resources: server.resource_count,
    prompts: server.prompt_count,
  };
}

function textReporter(): Reporter {
  const shown = new Map<string, string>();
  let isStopping = false;
  const server = (event: ServerEvent) => {
    const { state, error } = subjectOf(event);
    const label = labelOf(event);
    // The result of the start follows shortly.
    if (isStopping || state === 'starting' || (state === 'stopped' && event.from === 'idle')) return;
    const text = serverText(event);
    // Repeated failures with the same error are shown once.
    const news = error === null ? text : `${state} ${error}`;
    if (shown.get(label) === news) return;
    shown.set(label, news);
    print(text);
  };
  return {
    progress: (message) => print(`${message} …`),
    listening: (address) => print(banner(address)),
    noServers: () => print('    none yet: switchboard server add'),
    server,
    configured: (started, changed, stopped) => {
      const changes = [
        ...started.map((name) => `+ ${name}`),
        ...changed.map((name) => `~ ${name}`),
        ...stopped.map((name) => `- ${name}`),
      ];
      print(`configuration changed: ${changes.length === 0 ? 'settings only' : changes.join('  ')}`);
    },
    warning: (message) => complain(`warning: ${message}`),
    stopping: () => {
      isStopping = true;
      print('stopping …');
    },
    waiting: (what) => print(`stopping: waiting for ${waitingText(what)}`),
  };
}

function waitingText({ calls, servers, limitMs }: Waiting): string {
  const limit = `up to ${limitMs / 1_000} s`;
  if (calls === 0) return `hosted servers to end (${servers.join(', ')}), ${limit}`;
  const names = servers.length === 0 ? '' : ` (${servers.join(', ')})`;
  return `${calls === 1 ? '1 call' : `${calls} calls`}${names}, ${limit}`;
}

function serverText(event: ServerEvent): string {
  const { state } = subjectOf(event);
  return `  ${marks[state]} ${labelOf(event).padEnd(20)} ${stateColumn(state, false)} ${eventNotes(event)}`.trimEnd();
}

/** Adds the project, unless it is the default one. */
function labelOf(event: ServerEvent): string {
  const { label } = subjectOf(event);
  const { project } = event.server;
  return project === DEFAULT_PROJECT ? label : `${project}/${label}`;
}
