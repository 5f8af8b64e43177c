import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inject } from 'vitest';
import { dockerBytes } from './docker-request.ts';
import { removeEngine } from './engine-remains.ts';
import { settingsPath, socketPathIn, writeSettings } from './engine-settings.ts';
import { onlyOnce } from './only-once.ts';
import { requirePart } from './parts.ts';
import { patienceMs } from './patience.ts';
import { isRunning } from './processes.ts';

export { dockerBytes, dockerEvents, dockerRequest } from './docker-request.ts';

export interface Engine {
  socketPath: string;
}

type Test = Parameters<typeof requirePart>[1];

/** Shared by all tests of a run; the first one starts it. Skips the test if a requirement is missing. */
export async function sharedEngine(test: Test): Promise<Engine> {
  const programs = requirePrograms(test);
  const folder = join(inject('docker'), 'shared');
  makeFolder(folder);
  await onlyOnce(folder, 'engine', async () => {
    writeSettings({ folder, runsc: programs.runsc, liveRestore: false });
    const engine = run(programs.dockerd, folder);
    await waitUntilItAnswers(folder, engine);
    // Other test processes may need it.
    engine.unref();
  });
  return { socketPath: socketPathIn(folder) };
}

interface OwnEngineOptions {
  liveRestore?: boolean;
  /** Limits the disk of containers, which few engines can. The limit includes the image. */
  quotas?: boolean;
  /** The owner of this folder cleans up the engine. */
  under?: string;
}

/** An engine for a test that stops or configures it. */
export class OwnEngine implements Engine, AsyncDisposable {
  readonly socketPath: string;
  private readonly dockerd: string;
  private readonly folder: string;
  private process: ChildProcess | undefined;

  private constructor(dockerd: string, folder: string) {
    this.dockerd = dockerd;
    this.folder = folder;
    this.socketPath = socketPathIn(folder);
  }

  static async start(test: Test, options: OwnEngineOptions = {}): Promise<OwnEngine> {
    const { liveRestore = false, quotas = false, under = inject('docker') } = options;
    const { dockerd, runsc } = requirePrograms(test);
    const folder = mkdtempSync(join(under, 'own-'));
    writeSettings({ folder, runsc, liveRestore });
    const engine = new OwnEngine(dockerd, folder);
    try {
      if (quotas) mountBtrfs(join(folder, 'data'));
      await engine.start();
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      throw error;
    }
    return engine;
  }

  /** Also restarts it with the same data and socket. */
  async start(): Promise<void> {
    if (this.process !== undefined) throw new Error('The engine runs already');
    this.process = run(this.dockerd, this.folder);
    await waitUntilItAnswers(this.folder, this.process);
  }

  /** Like a service manager: without `liveRestore`, it stops its containers first. */
  stop(): Promise<void> {
    return this.end('SIGTERM');
  }

  /** Containers keep running, but without `liveRestore` the next start ends them. Its containerd ends with it. */
  async kill(): Promise<void> {
    const pidFile = join(this.folder, 'exec/containerd/containerd.pid');
    const containerd = Number(readFileSync(pidFile, 'utf8'));
    await this.end('SIGKILL');
    while (isRunning(containerd)) await delay(20);
    // Until its parent reaps it, the next engine would take it for running.
    rmSync(pidFile);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeEngine(this.folder);
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const ending = this.process;
    if (ending === undefined) throw new Error('The engine does not run');
    this.process = undefined;
    const ended = once(ending, 'exit');
    ending.kill(signal);
    await ended;
  }
}

/** Not its parents, which are gone when the run has ended. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function requirePrograms(test: Test): { dockerd: string; runsc: string } {
  return { dockerd: requirePart('docker', test).command, runsc: requirePart('runsc', test).command };
}

/** A file system with quotas in a sparse file. */
function mountBtrfs(folder: string): void {
  const image = `${folder}.btrfs`;
  writeFileSync(image, '');
  truncateSync(image, 4 * 2 ** 30);
  execFileSync('mkfs.btrfs', ['--quiet', image], { stdio: 'ignore' });
  mkdirSync(folder);
  execFileSync('mount', ['-o', 'loop', image, folder]);
}

function run(dockerd: string, folder: string): ChildProcess {
  const log = openSync(logPath(folder), 'a');
  const engine = spawn(dockerd, ['--config-file', settingsPath(folder)], {
    // The engine finds its programs in PATH, and needs those of root.
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/bin:/sbin:/bin` },
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  return engine;
}

async function waitUntilItAnswers(folder: string, engine: ChildProcess): Promise<void> {
  for (const deadline = Date.now() + patienceMs; ; await delay(20)) {
    try {
      await dockerBytes(socketPathIn(folder), 'GET', '/_ping');
      return;
    } catch (error) {
      if (engine.exitCode === null && engine.signalCode === null && Date.now() < deadline) continue;
      const said = readFileSync(logPath(folder), 'utf8').trim().split('\n').slice(-5).join('\n');
      throw new Error(`The Docker engine does not answer; the end of what it said:\n${said}`, {
        cause: error,
      });
    }
  }
}

function logPath(folder: string): string {
  return join(folder, 'dockerd.log');
}
