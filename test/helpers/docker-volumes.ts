import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dockerRequest, type Engine } from './docker.ts';

/** Removes one that Switchboard may have mounted, past Switchboard. */
export async function removeVolume(engine: Engine, name: string): Promise<void> {
  const folder = await volumeFolder(engine, name);
  if (mountsAt(folder) > 0) execFileSync('umount', ['--lazy', folder]);
  await dockerRequest(engine.socketPath, 'DELETE', `/volumes/${name}`);
}

/** Where the machine has what is in the volume. */
export async function volumeFolder({ socketPath }: Engine, name: string): Promise<string> {
  return (await dockerRequest<{ Mountpoint: string }>(socketPath, 'GET', `/volumes/${name}`)).Mountpoint;
}

export function mountsAt(folder: string): number {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  return mounts.filter((line) => line.split(' ')[1] === folder).length;
}

/** The loop devices for files below that folder; those of a file that was removed too. */
export function loopDevicesBelow(folder: string): string[] {
  return readdirSync('/sys/block').filter((device) => {
    try {
      const file = readFileSync(join('/sys/block', device, 'loop/backing_file'), 'utf8');
      return file.startsWith(`${folder}/`);
    } catch {
      return false;
    }
  });
}
