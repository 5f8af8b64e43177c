import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestDatabase } from './database.ts';
import { freePort } from './free-port.ts';
import type { HttpProxy } from './http-proxy.ts';
import { patienceMs } from './patience.ts';
import { endPostgresIn, removeHome } from './postgres.ts';
import { fixtureProgram, mainEnvironment, mainProgram } from './programs.ts';
import { addKey, roleOfRun, startKeyAdder } from './with-key.ts';

interface UpEvent {
  event: string;
  [key: string]: unknown;
}

export interface RunningSwitchboard extends AsyncDisposable {
  url: string;
  /** Without a path. */
  baseUrl: string;
  configPath: string;
  home: string;
  /** Undefined if it runs its own PostgreSQL, or none. */
  databaseUrl: string | undefined;
  process: ChildProcess;
  events: UpEvent[];
  /** The first match, past or future. */
  event(fits: (event: UpEvent) => boolean): Promise<UpEvent>;
  configure(servers: object, settings?: object, more?: object): Promise<void>;
  stop(): Promise<void>;
}

interface SwitchboardOptions {
  args?: string[];
  env?: Record<string, string>;
  /** The limit of open files and connections. */
  openFiles?: number;
  /** `none` is the default, `shared` a new database on the shared server, `embedded` its own PostgreSQL; a `url` outlives it. */
  database?: 'shared' | 'embedded' | 'none' | { url: string };
  /** A folder that outlives it; a temporary one by default. */
  home?: string;
}

/** Runs the real program on a free port, with its own configuration file, home and database. */
export async function startSwitchboard(
  servers: object | undefined,
  settings: object = {},
  options: SwitchboardOptions = {},
): Promise<RunningSwitchboard> {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  const home = options.home ?? options.env?.SWITCHBOARD_HOME ?? folder;
  const configPath = join(folder, 'mcp.json');
  const role = roleOfRun();
  const authentication = role === undefined ? {} : { auth: true };
  await writeFile(configPath, configText(servers, { ...authentication, ...settings }));
  const database = await openDatabase(options.database);
  const { openFiles } = options;
  const limit = openFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`];
  const words = [mainProgram, 'up', '--config', configPath, '--port', '0', '--json', ...(options.args ?? [])];
  const [command, ...parameters] = [...limit, process.execPath, ...words];
  const child = spawn(command!, parameters, {
    env: {
      ...{ ...process.env, ...mainEnvironment },
      ...{ DATABASE_URL: database.variable, SWITCHBOARD_HOME: home },
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const events: UpEvent[] = [];
  const arrivals = new EventEmitter().setMaxListeners(0);
  let complaints = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const event = JSON.parse(line) as UpEvent;
    events.push(event);
    arrivals.emit('event', event);
  });

  const event = (fits: (event: UpEvent) => boolean): Promise<UpEvent> => {
    const past = events.find(fits);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve, reject) => {
      const check = (candidate: UpEvent) => {
        if (!fits(candidate)) return;
        arrivals.off('event', check);
        resolve(candidate);
      };
      arrivals.on('event', check);
      void exited.then(() =>
        reject(
          new Error(
            `Switchboard ended (${child.exitCode ?? child.signalCode}) before that event: ${complaints}${JSON.stringify(events.at(-1))}`,
          ),
        ),
      );
    });
  };
  let keyAdder: HttpProxy | undefined;
  const end = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await exited;
    await keyAdder?.[Symbol.asyncDispose]();
    // In case it was killed.
    await endPostgresIn(home);
    await database.fresh?.[Symbol.asyncDispose]();
    await removeHome(folder);
  };
  let ended: Promise<void> | undefined;
  const stop = () => {
    ended ??= end();
    return ended;
  };
  const listening = await event(({ event: name }) => name === 'listening').catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  if (role !== undefined) {
    const own = { baseUrl: String(listening.base_url), home };
    keyAdder = await startKeyAdder(own.baseUrl, await addKey(own, { name: `run-${randomUUID()}`, role }));
  }
  const baseUrl = keyAdder?.origin ?? String(listening.base_url);
  return {
    url: `${baseUrl}/mcp`,
    baseUrl,
    configPath,
    home,
    databaseUrl: database.variable === 'none' ? undefined : database.variable,
    process: child,
    events,
    event,
    configure: (configured, changed, ...more) =>
      writeFile(configPath, configText(configured, { ...authentication, ...changed }, ...more)),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Defaults: the first list waits for every server, and shutdown for no call. `undefined` restores the program's default. */
function configText(mcpServers: object | undefined, settings: object = {}, more: object = {}): string {
  const switchboard = { discoveryWaitMs: patienceMs, shutdownGraceMs: 0, ...settings };
  return JSON.stringify({ mcpServers, switchboard, ...more });
}

function usualDatabase(): 'shared' | 'none' {
  return roleOfRun() === undefined ? 'none' : 'shared';
}

/** Only a test run has a shared server; other programs get the user's default. */
async function openDatabase(
  choice: SwitchboardOptions['database'] = process.env.VITEST === undefined ? 'embedded' : usualDatabase(),
): Promise<{ variable: string | undefined; fresh?: TestDatabase }> {
  if (choice === 'none') return { variable: 'none' };
  if (choice === 'embedded') return { variable: undefined };
  if (choice !== 'shared') return { variable: choice.url };
  const { freshDatabase } = await import('./database.ts');
  const fresh = await freshDatabase();
  return { variable: fresh.url, fresh };
}

const root = join(import.meta.dirname, '../..');

type ReferenceServer = 'everything' | 'filesystem' | 'memory';

/** The configuration of a reference server over stdio. */
export function referenceServer(name: ReferenceServer, ...more: string[]) {
  return { command: process.execPath, args: [programOf(name), ...more] };
}

export function fixtureServer(name: string, env: Record<string, string> = {}, ...more: string[]) {
  return {
    command: process.execPath,
    args: [fixtureProgram(name), ...more],
    env,
  };
}

export interface RunningServer extends AsyncDisposable {
  url: string;
}

const httpModes = {
  sse: { path: '/sse', ready: /is running on port/ },
  streamableHttp: { path: '/mcp', ready: /listening on port/ },
};

/** The HTTP modes of `everything` take the port as a variable. */
export async function startEverything(mode: keyof typeof httpModes): Promise<RunningServer> {
  const { path, ready } = httpModes[mode];
  // Another process may take the free port first; then this tries another.
  for (;;) {
    const port = await freePort();
    const child = spawn(process.execPath, [programOf('everything'), mode], {
      env: { ...process.env, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const exited = once(child, 'exit');
    const said = createInterface({ input: child.stderr });
    const isServing = await new Promise<boolean>((resolve) => {
      said.on('line', (line) => ready.test(line) && resolve(true));
      said.on('close', () => resolve(false));
    });
    if (!isServing) continue;
    return {
      url: `http://127.0.0.1:${port}${path}`,
      async [Symbol.asyncDispose]() {
        child.kill('SIGKILL');
        await exited;
      },
    };
  }
}

function programOf(name: ReferenceServer): string {
  return join(root, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
}
