import { readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isStartedWith } from './processes.ts';

export const SOCKET = '.s.PGSQL.5432';
const pidFiles = ['postmaster.pid', `${SOCKET}.lock`];

/** The pid of the PostgreSQL that uses this folder, including one that starts or stops. */
export function findPostmaster(data: string): number | undefined {
  return ownerOf(data, read(join(data, 'postmaster.pid')));
}

/**
 * After a crash, PostgreSQL would refuse to start if another process has its old pid. Renames a file before deleting it: if
 * another process has replaced it meanwhile, it is renamed back.
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

/** The first line is the pid, negated in single-user mode. */
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
