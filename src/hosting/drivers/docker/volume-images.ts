import { execFile } from 'node:child_process';
import {
  chmod,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  truncate,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** For formatting, checking and growing a large file system. */
const LONG_MS = 120_000;
const LEAST_GROWTH = 1024 * 1024;
/** Keeps the file below the limit until growing is done. */
const MARGIN_KB = 64;
/** The kernel needs a moment to release the mounts of an exited container. */
const RELEASE_MS = 3_000;
const POLL_MS = 100;

/**
 * Limits the size of volumes: each is a file system image, mounted on the folder of the volume. The image is next to that
 * folder, so the engine removes it with the volume.
 */
export class VolumeImages {
  /** Without a socket path, the mounts that the engine sees are unknown. */
  private readonly socketPath: string | undefined;

  constructor(socketPath: string | undefined) {
    this.socketPath = socketPath;
  }

  /** Only root can mount, and the engine must be on this machine. */
  async canBeMade(): Promise<boolean> {
    return process.getuid?.() === 0 && (await this.engineProcesses()).length > 0;
  }

  /** Creates and mounts an image with the owner and mode of the engine's folder. */
  async make(folder: string, bytes: number): Promise<void> {
    const { uid, gid, mode } = await stat(folder);
    const image = imageOf(folder);
    // Renamed when complete, so that an image is never partial.
    const unfinished = `${image}.unfinished`;
    await rm(unfinished, { force: true });
    const file = await open(unfinished, 'wx', 0o600);
    try {
      await file.truncate(bytes);
      // A sparse file is all zeros, so nothing needs to be initialized.
      const extended = `lazy_itable_init=1,lazy_journal_init=1,root_owner=${uid}:${gid}`;
      await runCommand('mkfs.ext4', ['-q', '-F', '-m', '0', '-E', extended, unfinished], {
        timeoutMs: LONG_MS,
      });
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, image);
    await this.mount(folder);
    await chmod(folder, mode & 0o7777);
  }

  /** Mounts the image if needed, such as after a reboot. */
  async mount(folder: string): Promise<void> {
    if (await isMounted(folder)) return;
    // `discard` frees deleted blocks on the host.
    const options = 'loop,nosuid,nodev,discard';
    await runCommand('mount', ['-t', 'ext4', '-o', options, imageOf(folder), folder]);
    const seen = await Promise.all((await this.engineProcesses()).map((pid) => isMounted(folder, pid)));
    if (seen.includes(false)) {
      await this.unmount(folder);
      throw new Error('the engine does not see what Switchboard mounts');
    }
    // The engine copies the content of the container image only into an empty volume.
    await rmdir(join(folder, 'lost+found')).catch(() => {});
  }

  /** Lazily, so that it works while the folder is in use. */
  async unmount(folder: string): Promise<void> {
    if (await isMounted(folder)) await runCommand('umount', ['--lazy', folder]);
  }

  /** Rejects if only root may look. */
  async exists(folder: string): Promise<boolean> {
    return (await this.sizeOf(folder)) !== undefined;
  }

  async isTooSmall(folder: string, bytes: number): Promise<boolean> {
    const size = await this.sizeOf(folder);
    return size !== undefined && bytes - size >= LEAST_GROWTH;
  }

  /** Leaves it unmounted, because growing a mounted file system needs a capability that root may lack. */
  async grow(folder: string, bytes: number): Promise<void> {
    const image = imageOf(folder);
    if (await isMounted(folder)) await runCommand('umount', [folder]);
    await untilUnused(image);
    // 1 means repaired, such as the removed lost+found.
    await runCommand('e2fsck', ['-f', '-p', image], { timeoutMs: LONG_MS, allowed: [1] });
    const kilobytes = Math.floor(bytes / 1024) - MARGIN_KB;
    await runCommand('resize2fs', [image, `${kilobytes}K`], { timeoutMs: LONG_MS });
    await truncate(image, bytes);
  }

  private async sizeOf(folder: string): Promise<number | undefined> {
    try {
      return (await stat(imageOf(folder))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  private async engineProcesses(): Promise<string[]> {
    return this.socketPath === undefined ? [] : listenersAt(this.socketPath);
  }
}

function imageOf(folder: string): string {
  return join(dirname(folder), 'switchboard.ext4');
}

/** Another container may still use the volume. */
async function untilUnused(image: string): Promise<void> {
  const args = ['--noheadings', '--output', 'NAME', '--associated', image];
  for (const deadline = performance.now() + RELEASE_MS; ; await delay(POLL_MS)) {
    if ((await runCommand('losetup', args)).trim() === '') return;
    if (performance.now() > deadline) throw new Error('another container uses it');
  }
}

export async function isMounted(folder: string, pid = 'self'): Promise<boolean> {
  // Without root the engine's folders cannot be resolved, but their paths have no links.
  const path = await realpath(folder).catch(() => folder);
  const mounts = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
  return mounts.split('\n').some((line) => withoutEscapes(line.split(' ')[4] ?? '') === path);
}

/** The engine, and what opened the socket for it. Empty if the listener is not on this machine. */
async function listenersAt(socketPath: string): Promise<string[]> {
  const wanted = await withoutLinks(socketPath);
  const sockets = await readFile('/proc/net/unix', 'utf8').catch(() => '');
  const inodes = new Set<string>();
  for (const line of sockets.split('\n').slice(1)) {
    const [, , , flags = '', , , inode = '', ...path] = line.trim().split(/\s+/);
    const isListening = (Number.parseInt(flags, 16) & LISTENING) !== 0;
    if (isListening && (await withoutLinks(path.join(' '))) === wanted) inodes.add(`socket:[${inode}]`);
  }
  if (inodes.size === 0) return [];
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const holders = await Promise.all(pids.map((pid) => holdsOne(pid, inodes)));
  return pids.filter((_, index) => holders[index]);
}

/** __SO_ACCEPTCON of the kernel. */
const LISTENING = 0x10000;

async function holdsOne(pid: string, inodes: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  for (const file of await readdir(folder).catch(() => [])) {
    if (inodes.has(await readlink(join(folder, file)).catch(() => ''))) return true;
  }
  return false;
}

async function withoutLinks(path: string): Promise<string> {
  if (!path.startsWith('/')) return path;
  return join(await realpath(dirname(path)).catch(() => dirname(path)), basename(path));
}

/** The kernel writes a space as \040. */
function withoutEscapes(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

interface CommandOptions {
  timeoutMs?: number;
  /** Exit codes besides 0 that mean success. */
  allowed?: readonly number[];
}

const DEFAULT_TIMEOUT_MS = 30_000;

/** Runs a program without a shell. Returns its stdout. */
function runCommand(
  program: string,
  args: readonly string[],
  { timeoutMs = DEFAULT_TIMEOUT_MS, allowed = [] }: CommandOptions = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      // PATH may lack the programs of root. The rest of our environment may be secret.
      env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/usr/bin:/sbin:/bin`, LC_ALL: 'C' },
    } as const;
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null || (typeof error.code === 'number' && allowed.includes(error.code))) resolve(stdout);
      else reject(new Error(describeFailure(program, error, stderr, timeoutMs), { cause: error }));
    });
  });
}

function describeFailure(
  program: string,
  { code, killed }: { code?: number | string | null | undefined; killed?: boolean | undefined },
  stderr: string,
  timeoutMs: number,
): string {
  if (code === 'ENOENT') return `${program} is not installed`;
  if (killed === true) return `${program} took longer than ${timeoutMs / 1_000} s`;
  const [line = ''] = stderr.trim().split('\n');
  return line === '' ? `${program} failed with ${code}` : `${program} failed: ${line.replace(/\.$/, '')}`;
}
