import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dockerRequest, type Engine } from './docker.ts';

/** Removes a volume that Switchboard may have mounted, without Switchboard. */
export async function removeVolume(engine: Engine, name: string): Promise<void> {
  const folder = await volumeFolder(engine, name);
  if (mountsAt(folder) > 0) execFileSync('umount', ['--lazy', folder]);
  await dockerRequest(engine.socketPath, 'DELETE', `/volumes/${name}`);
}

/** The host path of the volume. */
export async function volumeFolder({ socketPath }: Engine, name: string): Promise<string> {
  return (await dockerRequest<{ Mountpoint: string }>(socketPath, 'GET', `/volumes/${name}`)).Mountpoint;
}

export function mountsAt(folder: string): number {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  return mounts.filter((line) => line.split(' ')[1] === folder).length;
}

/** Includes loop devices of deleted files. */
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
