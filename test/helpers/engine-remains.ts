/** Ends an engine of the tests with all that it runs, and removes what it made: program, for the folder that it is given. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type EngineSettings, readSettings } from './engine-settings.ts';

const patienceMs = 20_000;

if (import.meta.main) await removeEngines(process.argv[2]!);

/** Removes the folder of a run, with the engines in it. */
async function removeEngines(folder: string): Promise<void> {
  for (const name of readdirSync(folder)) await removeEngine(join(folder, name));
  rmSync(folder, { recursive: true, force: true });
}

/** Does not ask the engine, because it may be dead or hang. */
export async function removeEngine(folder: string): Promise<void> {
  const settings = readSettings(folder);
  if (settings !== undefined) {
    await killAll(folder, settings);
    for (const socket of shimSockets(folder)) rmSync(socket, { force: true });
    unmountBelow(folder);
    await removeGroups(settings);
    removeBridges(settings);
  }
  rmSync(folder, { recursive: true, force: true });
}

/** The engine goes first, so that it starts nothing in the place of what is gone. */
async function killAll(folder: string, settings: EngineSettings): Promise<void> {
  for (const deadline = Date.now() + patienceMs; ; await delay(20)) {
    const running = [...programsOf(folder), ...processesIn(settings)];
    if (running.length === 0) return;
    if (Date.now() > deadline) throw new Error(`Processes of ${folder} do not end: ${running.join(', ')}`);
    for (const pid of running) kill(pid);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The engine, its containerd, and what holds a container: each is told of the folder when it is started. */
export function programsOf(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const [program = '', ...args] = readIfThere(`/proc/${pid}/cmdline`).split('\0');
      const isOfEngine = /^(dockerd|containerd|runc|runsc)/.test(basename(program));
      return isOfEngine && args.some((argument) => argument.includes(`${folder}/`));
    })
    .map(Number)
    .toSorted((one, other) => one - other);
}

/** One that has ended stays listed until its parent has asked how. */
export function isRunning(pid: number): boolean {
  const state = /^State:\s+(\w)/m.exec(readIfThere(`/proc/${pid}/status`))?.[1];
  return state !== undefined && !'ZX'.includes(state);
}

/** What runs in containers. */
function processesIn(settings: EngineSettings): number[] {
  const inGroups = groupsOf(settings).flatMap((group) =>
    readIfThere(join(group, 'cgroup.procs')).trim().split('\n'),
  );
  return [...new Set(inGroups)].map(Number).filter((pid) => pid > 0);
}

/** Outside of the folder, because a path to a socket must be short. */
function shimSockets(folder: string): string[] {
  const containers = join(folder, 'exec/containerd/daemon/io.containerd.runtime.v2.task/moby');
  if (!existsSync(containers)) return [];
  return readdirSync(containers)
    .map((id) => readIfThere(join(containers, id, 'address')).trim())
    .filter((address) => address.startsWith('unix:///'))
    .map((address) => address.slice('unix://'.length));
}

function unmountBelow(folder: string): void {
  const mounted = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${folder}/`));
  // The last one that was mounted is the first to go.
  for (const path of mounted.toReversed()) execFileSync('umount', ['--lazy', path]);
}

/** A group can be busy for a moment after its last process has ended. */
async function removeGroups(settings: EngineSettings): Promise<void> {
  for (const deadline = Date.now() + patienceMs; ; await delay(20)) {
    const busy = groupsOf(settings).filter((group) => !removeGroup(group));
    if (busy.length === 0) return;
    if (Date.now() > deadline) throw new Error(`Control groups stay busy: ${busy.join(', ')}`);
  }
}

function removeGroup(group: string): boolean {
  try {
    rmdirSync(group);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/** The inner ones first. There is one tree, or one for each kind of limit. */
function groupsOf({ group }: EngineSettings): string[] {
  const root = '/sys/fs/cgroup';
  const trees = [
    root,
    ...readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(root, name)),
  ];
  return trees
    .map((tree) => join(tree, group))
    .filter((path) => existsSync(path))
    .flatMap((path) => [path, ...foldersBelow(path)])
    .toReversed();
}

function foldersBelow(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Its own, and those of the networks that tests have made in it. */
function removeBridges(settings: EngineSettings): void {
  for (const bridge of bridgesOf(settings)) execFileSync('ip', ['link', 'delete', bridge]);
}

function bridgesOf({ networks }: EngineSettings): string[] {
  return networks.flatMap((network) =>
    execFileSync('ip', ['-oneline', 'address', 'show', 'to', network], { encoding: 'utf8' })
      .split('\n')
      .flatMap((line) => line.split(' ')[1] ?? []),
  );
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
