/** Starts what is compared: the server itself, Switchboard in front of it, and other gateways from npm. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Target } from './client.ts';
import { descendants, type Placement } from './processes.ts';
import { freePort, listeningUrl, pidOf, Unavailable, untilListening } from './starting.ts';

export const variantNames = [
  'direct',
  'switchboard-http',
  'switchboard-stdio',
  'switchboard-no-database',
  'supergateway',
  'mcp-proxy',
  'mcp-hub',
] as const;
export type VariantName = (typeof variantNames)[number];
export const peerNames = ['supergateway', 'mcp-proxy', 'mcp-hub'] as const satisfies VariantName[];

const httpEchoFile = fileURLToPath(new URL('./servers/http-echo.ts', import.meta.url));
const stdioEchoFile = fileURLToPath(new URL('./servers/stdio-echo.ts', import.meta.url));
const collectGarbageFile = new URL('./collect-garbage.mjs', import.meta.url).href;
/** The flags that `npm start` gives. */
const asNpmStart = ['--initial-heap-size=128'];
const STOP_TIMEOUT_MS = 5_000;
/** It stops what it hosts first. */
const STOP_HOST_TIMEOUT_MS = 60_000;
const DEFAULT_TOOL_COUNT = 3;

export interface Running {
  name: VariantName;
  pid: number;
  target: Target;
  stop(): Promise<void>;
}

/** A Switchboard that hosts servers. */
export interface Host {
  pid: number;
  baseUrl: string;
  stop(): Promise<void>;
}

export interface StartSettings {
  toolCount?: number;
  /** The direct server answers tools/list with the result in this file. */
  listFile?: string;
  /** Lets the bench ask the process to collect its garbage, by SIGUSR2. */
  canCollectGarbage?: boolean;
}

export class Lab {
  readonly #placement: Placement;
  readonly #program: string;
  readonly #folder: string;
  readonly #processes = new Set<ChildProcess>();
  #fileCount = 0;

  /** `program` is Switchboard's main file, from its sources or built. */
  constructor(placement: Placement, program: string, folder: string) {
    this.#placement = placement;
    this.#program = program;
    this.#folder = folder;
  }

  start(name: VariantName, settings: StartSettings = {}): Promise<Running> {
    switch (name) {
      case 'direct':
        return this.#startDirect(settings);
      case 'switchboard-http':
        return this.#startSwitchboardOverHttp(settings);
      case 'switchboard-stdio':
        return this.#startSwitchboard(name, settings, this.#stdioServer(settings));
      // The same without records of the calls.
      case 'switchboard-no-database':
        return this.#startSwitchboard(name, settings, this.#stdioServer(settings), '--no-database');
      case 'supergateway':
        return this.#startSupergateway(settings);
      case 'mcp-proxy':
        return this.#startMcpProxy(settings);
      case 'mcp-hub':
        return this.#startMcpHub(settings);
    }
  }

  /** Starts Switchboard wherever there is room for it, with what was kept under this name and perhaps a Docker engine. */
  async startHost(name: string, engine: string | undefined): Promise<Host> {
    const hosting = engine === undefined ? {} : { engine };
    const words = this.#switchboard(
      { canCollectGarbage: true },
      { mcpServers: {}, switchboard: { hosting } },
    );
    const child = this.#spawn(words, this.#homeOf(name));
    const url = new URL(await listeningUrl(child));
    return { pid: pidOf(child), baseUrl: url.origin, stop: () => this.#stop(child, STOP_HOST_TIMEOUT_MS) };
  }

  writeFile(content: string): string {
    const file = join(this.#folder, `file-${this.#fileCount++}.json`);
    writeFileSync(file, content);
    return file;
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#processes].map((child) => this.#stop(child)));
  }

  async #startDirect(settings: StartSettings): Promise<Running> {
    const child = this.#spawn(this.#placement.measured(this.#httpEcho(settings)));
    return this.#running('direct', child, new URL(await listeningUrl(child)));
  }

  async #startSwitchboardOverHttp(settings: StartSettings): Promise<Running> {
    const server = this.#spawn(
      this.#placement.other(this.#httpEcho({ ...settings, canCollectGarbage: false })),
    );
    const url = await listeningUrl(server);
    const running = await this.#startSwitchboard('switchboard-http', settings, { url });
    return {
      ...running,
      stop: async () => {
        await running.stop();
        await this.#stop(server);
      },
    };
  }

  async #startSwitchboard(
    name: VariantName,
    settings: StartSettings,
    server: object,
    ...flags: string[]
  ): Promise<Running> {
    const config = { mcpServers: { echo: server }, switchboard: { pageSize: 0 } };
    const words = this.#switchboard(settings, config, ...flags);
    const child = this.#spawn(this.#placement.measured(words), this.#homeOf(name));
    const url = await listeningUrl(child);
    // Its PostgreSQL is a server behind it, as the others are.
    this.#placement.moveToOther(descendants(pidOf(child)));
    return this.#running(name, child, new URL(url));
  }

  #switchboard(settings: StartSettings, config: object, ...flags: string[]): string[] {
    if (!existsSync(this.#program)) throw new Unavailable(`${this.#program} is not there`);
    const file = this.writeFile(JSON.stringify(config));
    const words = [this.#program, 'up', '--config', file, '--port', '0', '--json', ...flags];
    return this.#node(settings, ...asNpmStart, ...words);
  }

  #homeOf(name: string): Record<string, string> {
    return { SWITCHBOARD_HOME: join(this.#folder, name), DATABASE_URL: '' };
  }

  async #startSupergateway(settings: StartSettings): Promise<Running> {
    const { command, args } = this.#stdioServer(settings);
    const shellCommand = [command, ...args].map((word) => `'${word}'`).join(' ');
    return this.#startPeer('supergateway', settings, (port) => [
      ...['--stdio', shellCommand, '--outputTransport', 'streamableHttp', '--stateful'],
      ...['--port', String(port)],
    ]);
  }

  async #startMcpProxy(settings: StartSettings): Promise<Running> {
    const { command, args } = this.#stdioServer(settings);
    return this.#startPeer('mcp-proxy', settings, (port) => [
      ...['--port', String(port), '--host', '127.0.0.1', '--server', 'stream', '--', command, ...args],
    ]);
  }

  async #startMcpHub(settings: StartSettings): Promise<Running> {
    const config = this.writeFile(JSON.stringify({ mcpServers: { echo: this.#stdioServer(settings) } }));
    this.#writeMarketplaceCache();
    return this.#startPeer('mcp-hub', settings, (port) => ['--port', String(port), '--config', config]);
  }

  /** mcp-hub asks the internet for its marketplace at every start, unless it did so within the hour. */
  #writeMarketplaceCache(): void {
    const folder = join(this.#folder, 'mcp-hub', 'cache');
    mkdirSync(folder, { recursive: true });
    const registry = {
      version: '0',
      generatedAt: 0,
      totalServers: 1,
      servers: [{ id: 'none', name: 'none' }],
    };
    const cache = { registry, lastFetchedAt: Date.now(), serverDocumentation: {} };
    writeFileSync(join(folder, 'registry.json'), JSON.stringify(cache));
  }

  async #startPeer(
    name: (typeof peerNames)[number],
    settings: StartSettings,
    argumentsFor: (port: number) => string[],
  ): Promise<Running> {
    const program = peerProgram(name);
    const port = await freePort();
    const child = this.#spawn(
      this.#placement.measured(this.#node(settings, program, ...argumentsFor(port))),
      {
        HOME: this.#folder,
        XDG_DATA_HOME: this.#folder,
        XDG_STATE_HOME: this.#folder,
        XDG_CONFIG_HOME: this.#folder,
      },
    );
    await untilListening(child, port);
    return this.#running(name, child, new URL(`http://127.0.0.1:${port}/mcp`));
  }

  #running(name: VariantName, child: ChildProcess, url: URL): Running {
    return {
      name,
      pid: pidOf(child),
      target: {
        variant: name,
        port: Number(url.port),
        path: url.pathname,
        protocol: name === 'mcp-hub' ? 'mcp-hub' : 'mcp',
      },
      stop: () => this.#stop(child),
    };
  }

  #httpEcho(settings: StartSettings): string[] {
    const list = settings.listFile === undefined ? [] : ['--list-file', settings.listFile];
    const tools = String(settings.toolCount ?? DEFAULT_TOOL_COUNT);
    return this.#node(settings, httpEchoFile, '--tools', tools, ...list);
  }

  #stdioServer(settings: StartSettings): { command: string; args: string[] } {
    const tools = String(settings.toolCount ?? DEFAULT_TOOL_COUNT);
    const [command = '', ...args] = this.#placement.other([
      process.execPath,
      stdioEchoFile,
      '--tools',
      tools,
    ]);
    return { command, args };
  }

  #node(settings: StartSettings, ...args: string[]): string[] {
    const flags = settings.canCollectGarbage ? ['--expose-gc', '--import', collectGarbageFile] : [];
    return [process.execPath, ...flags, ...args];
  }

  #spawn(command: string[], environment: Record<string, string> = {}): ChildProcess {
    const [program = '', ...args] = command;
    const child = spawn(program, args, {
      cwd: this.#folder,
      env: { ...process.env, ...environment },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#processes.add(child);
    child.on('exit', () => this.#processes.delete(child));
    return child;
  }

  async #stop(child: ChildProcess, timeoutMs = STOP_TIMEOUT_MS): Promise<void> {
    if (!this.#processes.has(child)) return;
    const left = descendants(pidOf(child));
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    await exited;
    clearTimeout(timer);
    for (const pid of left) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended with its parent, as it should.
      }
    }
  }
}

function peerProgram(name: string): string {
  const folder = fileURLToPath(new URL(`./peers/node_modules/${name}`, import.meta.url));
  if (!existsSync(folder)) throw new Unavailable('not installed: run `npm ci` in bench/peers');
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    bin: Record<string, string>;
  };
  return join(folder, manifest.bin[name] ?? '');
}
