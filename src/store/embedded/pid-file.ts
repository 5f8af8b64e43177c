import { readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isStartedWith } from './processes.ts';

export const SOCKET = '.s.PGSQL.5432';
const pidFiles = ['postmaster.pid', `${SOCKET}.lock`];

/** The PostgreSQL that runs on this folder, also while it starts and stops. */
export function findPostmaster(data: string): number | undefined {
  return ownerOf(data, read(join(data, 'postmaster.pid')));
}

/**
 * After a crash PostgreSQL takes its own files for those of a running one where another process has its pid now. Moved
 * aside before they are deleted: if another process has started one meanwhile, its file goes back.
 */
export function removeStalePidFiles(data: string): void {
  for (const name of pidFiles) {
    const path = join(data, name);
    const contents = read(path);
    if (contents === undefined || ownerOf(data, contents) !== undefined) continue;
    const aside = `${path}.${process.pid}`;
    try {
      renameSync(path, aside);
      if (read(aside) === contents) rmSync(aside);
      else renameSync(aside, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

/** The first line is the pid; of one that is alone in its session it is negative. */
function ownerOf(data: string, contents: string | undefined): number | undefined {
  const pid = Math.abs(Number.parseInt(contents ?? '', 10));
  return Number.isInteger(pid) && pid > 0 && isStartedWith(pid, data) ? pid : undefined;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
