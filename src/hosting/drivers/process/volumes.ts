import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SwitchboardError } from '../../../errors.ts';
import type { InstanceSpec, Volumes } from '../../driver.ts';

type Server = Pick<InstanceSpec, 'name' | 'project'>;

/** Volumes as folders: a process sees the files of its host, so nothing can be mounted for it alone. */
export class ProcessVolumes implements Volumes {
  private readonly root: string;

  constructor(home: string) {
    this.root = join(home, 'volumes');
  }

  /** Makes those that are missing. Gives the folder of each volume, by its path. */
  async open(server: Server, volumes: readonly string[]): Promise<Record<string, string>> {
    const folders = volumes.map((path) => [path, join(this.folderOf(server), fileName(path))] as const);
    for (const [path, folder] of folders) {
      await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: Error) => {
        throw new SwitchboardError(
          'server_start_failed',
          `The volume "${path}" cannot be made: ${error.message}. Check that the folder ${this.root} may be written to.`,
          { cause: error },
        );
      });
    }
    return Object.fromEntries(folders);
  }

  async list(server: Server): Promise<string[]> {
    const folder = this.folderOf(server);
    const names = await readdir(folder).catch(() => []);
    return names.map((name) => join(folder, name));
  }

  async remove(server: Server): Promise<string[]> {
    const folders = await this.list(server);
    await rm(this.folderOf(server), { recursive: true, force: true });
    return folders;
  }

  private folderOf({ project, name }: Server): string {
    return join(this.root, fileName(project), fileName(name));
  }
}

/** Any text as the name of one file, and no two as the same: none is `.` or `..`. */
function fileName(text: string): string {
  return encodeURIComponent(text).replaceAll('.', '%2E');
}
