/** Kills a test engine with all its processes, and removes its files; as a program, for the given folder. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type EngineSettings, readSettings, retireSettings } from './engine-settings.ts';
import { patienceMs } from './patience.ts';

if (import.meta.main) await removeEngines(process.argv[2]!);

/** A test that does not know of the end may still create another engine. */
async function removeEngines(folder: string): Promise<void> {
  await untilGone(
    'Folders',
    () => (existsSync(folder) ? [folder] : []),
    async () => {
      for (const name of readdirSync(folder)) await removeEngine(join(folder, name));
      rmdirSync(folder);
    },
  );
}

/** Does not call the engine, which may be dead or hang. */
export async function removeEngine(folder: string): Promise<void> {
  const settings = readSettings(folder);
  if (settings !== undefined) {
    retireSettings(folder);
    const sockets = shimSockets(folder);
    await untilGone('Processes', () => [...programsOf(folder), ...processesIn(settings)], kill);
    for (const socket of sockets) rmSync(socket, { force: true });
    await untilGone(
      'Mounts',
      () => mountsBelow(folder),
      (path) => ignoreOutput('umount', '--lazy', path),
    );
    await untilGone('Control groups', () => groupsOf(settings), rmdirSync);
    await untilGone(
      'Bridges',
      () => bridgesOf(settings),
      (name) => ignoreOutput('ip', 'link', 'delete', name),
    );
  }
  rmSync(folder, { recursive: true, force: true });
}

/** Retries, because resources can be busy for a moment, or already removed by another process. */
async function untilGone<Remnant>(
  what: string,
  remnants: () => Remnant[],
  remove: (remnant: Remnant) => unknown,
): Promise<void> {
  let cause: unknown;
  for (const deadline = Date.now() + patienceMs; ; await delay(20)) {
    const found = remnants();
    if (found.length === 0) return;
    if (Date.now() > deadline) throw new Error(`${what} do not go away: ${found.join(', ')}`, { cause });
    for (const remnant of found) {
      await Promise.try(remove, remnant).catch((error: unknown) => {
        cause = error;
      });
    }
  }
}

function kill(pid: number): void {
  process.kill(pid, 'SIGKILL');
}

function ignoreOutput(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: 'ignore' });
}

/** The engine, its containerd and the container shims: each has the folder in its command line. */
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

function processesIn(settings: EngineSettings): number[] {
  const inGroups = groupsOf(settings).flatMap((group) =>
    readIfThere(join(group, 'cgroup.procs')).trim().split('\n'),
  );
  return [...new Set(inGroups)].map(Number).filter((pid) => pid > 0);
}

/** Outside of the folder, because socket paths must be short. Running containers record it; failed starts do not. */
function shimSockets(folder: string): string[] {
  const containers = join(folder, 'exec/containerd/daemon/io.containerd.runtime.v2.task/moby');
  const ids = new Set(existsSync(containers) ? readdirSync(containers) : []);
  for (const pid of programsOf(folder)) {
    const args = readIfThere(`/proc/${pid}/cmdline`).split('\0');
    if (args.includes('-id')) ids.add(args[args.indexOf('-id') + 1]!);
  }
  return [...ids].map((id) => shimSocketOf(folder, id));
}

/** The naming scheme of containerd. */
export function shimSocketOf(folder: string, id: string): string {
  const name = `${folder}/exec/containerd/containerd.sock/moby/${id}`;
  return `/run/containerd/s/${createHash('sha256').update(name).digest('hex')}`;
}

/** Unmounted in reverse order. */
function mountsBelow(folder: string): string[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${folder}/`))
    .toReversed();
}

/** The inner ones first. cgroup v2 has one tree, v1 one per controller. */
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

/** Its own bridge, and those of the networks that tests created. */
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
