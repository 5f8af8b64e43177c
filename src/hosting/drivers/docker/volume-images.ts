import { chmod, open, rename, rm, rmdir, stat, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from './command.ts';
import { isMounted, listenersAt } from './mounts.ts';

/** For formatting, checking and growing a large file system. */
const LONG_MS = 120_000;
/** Smaller growth is not worth it. */
const LEAST_GROWTH = 1024 * 1024;
/** Keeps the file below the limit until growing is done. */
const MARGIN_KB = 64;
/** The kernel needs a moment to release the mounts of an exited container. */
const RELEASE_MS = 3_000;
const OFTEN_MS = 100;

/**
 * Limits the size of volumes: each is a file system image, mounted on the folder of the volume. The image is next to that
 * folder, so the engine removes it with the volume.
 */
export class VolumeImages {
  /** Without a socket path it is unknown which mounts the engine sees. */
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
      // A sparse file is all zeros, so nothing must be initialized.
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

  /** Rejects if only root may know. */
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
  for (const deadline = performance.now() + RELEASE_MS; ; await delay(OFTEN_MS)) {
    if ((await runCommand('losetup', args)).trim() === '') return;
    if (performance.now() > deadline) throw new Error('another container uses it');
  }
}
