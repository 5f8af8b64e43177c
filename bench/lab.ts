/** Starts the variants: the server itself, Switchboard in front of it, and other gateways from npm. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Era } from './eras.ts';
import { peerCommand, peerEnvironment, type StdioServer } from './peers.ts';
import { descendants, type Placement } from './processes.ts';
import type { Target } from './requests.ts';
import { freePort, listeningUrl, pidOf, Unavailable, untilListening } from './starting.ts';
import {
  arrangementOf,
  type DirectName,
  isBefore,
  isPeer,
  type OwnName,
  type PeerName,
  type VariantName,
} from './variants.ts';

const httpEchoFile = fileURLToPath(new URL('./servers/http-echo.ts', import.meta.url));
const stdioEchoFile = fileURLToPath(new URL('./servers/stdio-echo.ts', import.meta.url));
const collectGarbageFile = new URL('./collect-garbage.mjs', import.meta.url).href;
/** The flags of `npm start`. */
const asNpmStart = ['--initial-heap-size=128'];
const STOP_TIMEOUT_MS = 5_000;
/** A host stops its hosted servers first. */
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
  /** The direct server returns the content of this file for tools/list. */
  listFile?: string;
  /** Makes the process collect garbage on SIGUSR2. */
  canCollectGarbage?: boolean;
}

/** Switchboard's main files, built or from source. */
export interface Programs {
  current: string;
  /** An older build to compare with, if any. */
  before: string | undefined;
}

export class Lab {
  readonly #placement: Placement;
  readonly #programs: Programs;
  readonly #folder: string;
  readonly #processes = new Set<ChildProcess>();
  #fileCount = 0;

  constructor(placement: Placement, programs: Programs, folder: string) {
    this.#placement = placement;
    this.#programs = programs;
    this.#folder = folder;
  }

  start(name: VariantName, settings: StartSettings = {}): Promise<Running> {
    if (isPeer(name)) return this.#startPeer(name, settings);
    if (name === 'direct' || name === 'direct-modern') return this.#startDirect(name, settings);
    return this.#startSwitchboard(name, settings);
  }

  /** Starts Switchboard, not pinned to a CPU, with the home of this name and optionally a Docker engine. */
  async startHost(name: string, engine: string | undefined): Promise<Host> {
    const hosting = engine === undefined ? {} : { engine };
    const config = { mcpServers: {}, switchboard: { hosting } };
    const words = this.#switchboard(this.#programs.current, { canCollectGarbage: true }, config);
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

  async #startDirect(name: DirectName, settings: StartSettings): Promise<Running> {
    const era = name === 'direct' ? 'legacy' : 'modern';
    const child = this.#spawn(this.#placement.measured(this.#httpEcho(era, settings)));
    return this.#running(name, era, child, new URL(await listeningUrl(child)));
  }

  async #startSwitchboard(name: OwnName, settings: StartSettings): Promise<Running> {
    const program = isBefore(name) ? this.#programs.before : this.#programs.current;
    if (program === undefined) throw new Unavailable('there is no older build to compare with');
    const { client, server, transport, flags } = arrangementOf(name);
    const echo =
      transport === 'stdio'
        ? this.#stdioServer(server, settings)
        : await this.#startHttpServer(server, settings);
    const config = { mcpServers: { echo }, switchboard: { pageSize: 0 } };
    const words = this.#switchboard(program, settings, config, ...flags);
    const child = this.#spawn(this.#placement.measured(words), this.#homeOf(name));
    const url = await listeningUrl(child);
    // Its PostgreSQL counts as a server behind it.
    this.#placement.moveToOther(descendants(pidOf(child)));
    const credential = name === 'switchboard-key' ? await this.#addKey(name, url) : '';
    return this.#running(name, client, child, new URL(url), credential);
  }

  /** Returns the header with a new key. */
  async #addKey(name: OwnName, url: string): Promise<string> {
    const token = readFileSync(join(this.#homeOf(name).SWITCHBOARD_HOME!, 'token'), 'utf8').trim();
    const response = await fetch(new URL('/api/v1/keys', url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'bench', project: 'default', role: 'caller' }),
    });
    if (response.status !== 201) throw new Error(`no key: ${await response.text()}`);
    const { key } = (await response.json()) as { key: string };
    return `Authorization: Bearer ${key}\r\n`;
  }

  /** Runs until stopAll(). */
  async #startHttpServer(era: Era, settings: StartSettings): Promise<{ url: string }> {
    const words = this.#httpEcho(era, { ...settings, canCollectGarbage: false });
    return { url: await listeningUrl(this.#spawn(this.#placement.other(words))) };
  }

  #switchboard(program: string, settings: StartSettings, config: object, ...flags: string[]): string[] {
    if (!existsSync(program)) throw new Unavailable(`${program} does not exist`);
    const file = this.writeFile(JSON.stringify(config));
    const words = [program, 'up', '--config', file, '--port', '0', '--json', ...flags];
    return this.#node(settings, ...asNpmStart, ...words);
  }

  #homeOf(name: string): Record<string, string> {
    return { SWITCHBOARD_HOME: join(this.#folder, name), DATABASE_URL: '' };
  }

  async #startPeer(name: PeerName, settings: StartSettings): Promise<Running> {
    const port = await freePort();
    const command = peerCommand(name, this.#stdioServer('legacy', settings), port, this.#folder);
    const words = this.#placement.measured(this.#node(settings, ...command));
    const child = this.#spawn(words, peerEnvironment(this.#folder));
    await untilListening(child, port);
    const protocol = name === 'mcp-hub' ? 'mcp-hub' : 'legacy';
    return this.#running(name, protocol, child, new URL(`http://127.0.0.1:${port}/mcp`));
  }

  #running(
    name: VariantName,
    protocol: Target['protocol'],
    child: ChildProcess,
    url: URL,
    credential = '',
  ): Running {
    return {
      name,
      pid: pidOf(child),
      target: { variant: name, port: Number(url.port), path: url.pathname, protocol, credential },
      stop: () => this.#stop(child),
    };
  }

  #httpEcho(era: Era, settings: StartSettings): string[] {
    const list = settings.listFile === undefined ? [] : ['--list-file', settings.listFile];
    return this.#node(settings, httpEchoFile, ...echoFlags(era, settings), ...list);
  }

  #stdioServer(era: Era, settings: StartSettings): StdioServer {
    const words = [process.execPath, stdioEchoFile, ...echoFlags(era, settings)];
    const [command = '', ...args] = this.#placement.other(words);
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
        // It ended with its parent.
      }
    }
  }
}

function echoFlags(era: Era, { toolCount = DEFAULT_TOOL_COUNT }: StartSettings): string[] {
  return ['--era', era, '--tools', String(toolCount)];
}
