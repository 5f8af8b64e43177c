import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A line that `switchboard up --json` printed. */
interface UpEvent {
  event: string;
  [key: string]: unknown;
}

export interface RunningSwitchboard extends AsyncDisposable {
  /** The MCP endpoint. */
  url: string;
  /** The same address without a path. */
  baseUrl: string;
  configPath: string;
  process: ChildProcess;
  /** Everything that it printed so far. */
  events: UpEvent[];
  /** The first event, past or future, that fits. */
  event(fits: (event: UpEvent) => boolean): Promise<UpEvent>;
  /** Replaces the configuration file while it runs. */
  configure(config: object): Promise<void>;
  stop(): Promise<void>;
}

const main = join(import.meta.dirname, '../../src/main.ts');

/** Runs the real program on a free port, with a configuration file and a home of its own. */
export async function startSwitchboard(
  config: object,
  options: {
    args?: string[];
    env?: Record<string, string>;
    /** How many files and connections it may have open at a time. */
    openFiles?: number;
  } = {},
): Promise<RunningSwitchboard> {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  const configPath = join(folder, 'mcp.json');
  await writeFile(configPath, JSON.stringify(config));
  const { openFiles } = options;
  const limit = openFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`];
  const words = [main, 'up', '--config', configPath, '--port', '0', '--json', ...(options.args ?? [])];
  const [command, ...parameters] = [...limit, process.execPath, ...words];
  const child = spawn(command!, parameters, {
    env: { ...process.env, SWITCHBOARD_HOME: folder, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
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
      void exited.then(() => reject(new Error(`Switchboard ended before that event: ${complaints}`)));
    });
  };
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await exited;
    await rm(folder, { recursive: true, force: true });
  };
  const listening = await event(({ event: name }) => name === 'listening').catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    url: String(listening.url),
    baseUrl: String(listening.base_url),
    configPath,
    process: child,
    events,
    event,
    configure: (next) => writeFile(configPath, JSON.stringify(next)),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
