import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

const PRIVATE = 0o600;

/** Writes a file that only its owner can read. Whatever goes wrong, the path has all of it or what it had before. */
export function replacePrivateFile(path: string, text: string): void {
  withDraft(path, text, (draft) => renameSync(draft, path));
}

/** The same, unless the file is there: of several processes that do this at once, one makes it. Tells whether it was us. */
export function createPrivateFile(path: string, text: string): boolean {
  try {
    withDraft(path, text, (draft) => linkSync(draft, path));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * What is in a file that only its owner may read. One that others could read is made private, and `warn` is told what
 * happened, with `advice`. Undefined where it is another user's, who has put it there.
 */
export function readPrivateFile(
  path: string,
  advice: string,
  warn: (message: string) => void,
): string | undefined {
  const file = openSync(path, 'r');
  try {
    const { mode, uid } = fstatSync(file);
    const user = process.geteuid?.();
    if (user !== undefined && user !== 0 && uid !== user && uid !== 0) return undefined;
    if (user !== undefined && (mode & 0o077) !== 0) {
      fchmodSync(file, PRIVATE);
      warn(`${path} could be read by other users; now it cannot. ${advice}`);
    }
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function withDraft(path: string, text: string, publish: (draft: string) => void): void {
  const folder = dirname(path);
  const draft = `${path}.${randomUUID()}`;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    // On the disk before anything that relies on it.
    writeFileSync(draft, text, { mode: PRIVATE, flush: true });
    publish(draft);
  } finally {
    rmSync(draft, { force: true });
  }
  flushFolder(folder);
}

/** A name is on the disk when its folder is. Not every file system can be told so. */
function flushFolder(folder: string): void {
  let handle: number | undefined;
  try {
    handle = openSync(folder, 'r');
    fsyncSync(handle);
  } catch {
    // What is in the file is safe all the same.
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}
