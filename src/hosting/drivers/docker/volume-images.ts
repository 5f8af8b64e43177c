import { chmod, open, rename, rm, rmdir, stat, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from './command.ts';
import { isMounted, listenersAt } from './mounts.ts';

/** Formatting, checking and growing touch much of a large file system. */
const LONG_MS = 120_000;
/** A raise by less is not worth it. */
const LEAST_GROWTH = 1024 * 1024;
/** What growing leaves free, so that the file is smaller than the limit until all is done. */
const MARGIN_KB = 64;
/** The kernel takes a moment to let go of the mounts of a container that has ended. */
const LETTING_GO_MS = 3_000;
const OFTEN_MS = 100;

/**
 * Keeps what is in volumes in file systems of a limited size. Each is an image in the folder that the engine made for the
 * volume, beside the folder that containers see, where it is mounted. So the engine removes it with the volume.
 */
export class VolumeImages {
  /** Undefined: the engine does not listen at a unix socket, so nobody knows whose mounts it sees. */
  private readonly socketPath: string | undefined;

  constructor(socketPath: string | undefined) {
    this.socketPath = socketPath;
  }

  /** Only root can mount, and the engine has to be on this machine. */
  async canBeMade(): Promise<boolean> {
    return process.getuid?.() === 0 && (await this.engineProcesses()).length > 0;
  }

  /** Makes an image for a new volume, with the owner and the mode of the engine's folder, and mounts it. */
  async make(folder: string, bytes: number): Promise<void> {
    const { uid, gid, mode } = await stat(folder);
    const image = imageOf(folder);
    // Whatever has the name of an image is whole.
    const unfinished = `${image}.unfinished`;
    await rm(unfinished, { force: true });
    const file = await open(unfinished, 'wx', 0o600);
    try {
      await file.truncate(bytes);
      // A sparse file is all zeros, so nothing has to be cleared in it.
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

  /** Mounts the image where that is not done, such as after a start of the machine. */
  async mount(folder: string): Promise<void> {
    if (await isMounted(folder)) return;
    // What is deleted inside is to be free on the machine too.
    const options = 'loop,nosuid,nodev,discard';
    await runCommand('mount', ['-t', 'ext4', '-o', options, imageOf(folder), folder]);
    const seen = await Promise.all((await this.engineProcesses()).map((pid) => isMounted(folder, pid)));
    if (seen.includes(false)) {
      await this.unmount(folder);
      throw new Error('the engine does not see what Switchboard mounts');
    }
    // The engine copies what the image of a container has there only into an empty volume.
    await rmdir(join(folder, 'lost+found')).catch(() => {});
  }

  /** Also where somebody is still in the folder: it is gone for all others. */
  async unmount(folder: string): Promise<void> {
    if (await isMounted(folder)) await runCommand('umount', ['--lazy', folder]);
  }

  /** Whether there is an image; fails where only root may know. */
  async isThere(folder: string): Promise<boolean> {
    return (await this.sizeOf(folder)) !== undefined;
  }

  async isTooSmall(folder: string, bytes: number): Promise<boolean> {
    const size = await this.sizeOf(folder);
    return size !== undefined && bytes - size >= LEAST_GROWTH;
  }

  /**
   * Grows the file system while it is not mounted: to grow one that is takes a capability that root has not everywhere.
   * Leaves it unmounted.
   */
  async grow(folder: string, bytes: number): Promise<void> {
    const image = imageOf(folder);
    if (await isMounted(folder)) await runCommand('umount', [folder]);
    await untilUnused(image);
    // 1: there was something to repair, such as the lost+found that we removed.
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

/** Another container may have the volume too: then it stays mounted there. */
async function untilUnused(image: string): Promise<void> {
  const args = ['--noheadings', '--output', 'NAME', '--associated', image];
  for (const deadline = performance.now() + LETTING_GO_MS; ; await delay(OFTEN_MS)) {
    if ((await runCommand('losetup', args)).trim() === '') return;
    if (performance.now() > deadline) throw new Error('another container uses it');
  }
}
