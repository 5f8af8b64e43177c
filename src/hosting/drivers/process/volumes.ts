import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SwitchboardError } from '../../../errors.ts';
import type { InstanceSpec, Volumes } from '../../driver.ts';

type Server = Pick<InstanceSpec, 'name' | 'project'>;

/** Volumes are folders, because nothing can be mounted for a plain process alone. */
export class ProcessVolumes implements Volumes {
  private readonly root: string;

  constructor(home: string) {
    this.root = join(home, 'volumes');
  }

  /** Returns the folder of each volume path. */
  async open(server: Server, volumes: readonly string[]): Promise<Record<string, string>> {
    const folders = volumes.map((path) => [path, join(this.folderOf(server), fileName(path))] as const);
    for (const [path, folder] of folders) {
      await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: Error) => {
        throw new SwitchboardError(
          'server_start_failed',
          `Cannot create the volume "${path}": ${error.message}. Check that the folder ${this.root} is writable.`,
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

/** A unique and safe file name for any text, never `.` or `..`. */
function fileName(text: string): string {
  return encodeURIComponent(text).replaceAll('.', '%2E');
}
