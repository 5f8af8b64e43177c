import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { SwitchboardError } from './errors.ts';
import { NotAFileError, withRegularFile } from './regular-files.ts';

const PRIVATE = 0o600;
/** Tokens, passwords and keys are short; hundreds of keys fit. */
const MAX_BYTES = 65_536;

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

interface PrivateFileRules {
  /** What to do about a file that is refused, or that others could read. */
  advice: string;
  warn: (message: string) => void;
  /** A user whose file is taken like one of ours. */
  trusted?: number | undefined;
}

/**
 * What is in a file that only its owner may read. One that others could read is made private, and `warn` is told what
 * happened. One of another user is refused, also where we are root: whoever put it there knows what is in it.
 */
export function readPrivateFile(path: string, { advice, warn, trusted }: PrivateFileRules): string {
  try {
    return withRegularFile(path, (file, { mode, uid }) => {
      if (isOfOthers(uid) && uid !== trusted) {
        throw refusal(`${path} belongs to another user (${uid}), who knows what is in it. ${advice}`);
      }
      if (process.geteuid !== undefined && (mode & 0o077) !== 0) {
        fchmodSync(file, PRIVATE);
        warn(`${path} could be read by other users; now it cannot. ${advice}`);
      }
      return textOf(file, path);
    });
  } catch (error) {
    throw error instanceof NotAFileError ? refusal(`${path} is ${error.kind} and no file. ${advice}`) : error;
  }
}

/** The same without a look at who may read it. */
export function readShortFile(path: string): { text: string; stats: Stats } {
  return withRegularFile(path, (file, stats) => ({ text: textOf(file, path), stats }));
}

/** Whether a file with that owner is neither ours nor root's. */
export function isOfOthers(uid: number): boolean {
  const user = process.geteuid?.();
  return user !== undefined && uid !== user && uid !== 0;
}

/** What the system says of the size does not count: it may be 0 for a file without an end. */
function textOf(file: number, path: string): string {
  const bytes = Buffer.alloc(MAX_BYTES + 1);
  let length = 0;
  for (;;) {
    const count = readSync(file, bytes, length, bytes.length - length, null);
    length += count;
    if (length > MAX_BYTES)
      throw refusal(`${path} is over ${MAX_BYTES} bytes: it is not the file that it should be`);
    if (count === 0) return bytes.toString('utf8', 0, length);
  }
}

function refusal(message: string): SwitchboardError {
  return new SwitchboardError('invalid_config', message);
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
