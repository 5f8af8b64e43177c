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
/** Enough for hundreds of keys. */
const MAX_BYTES = 65_536;

/** Writes a file that only its owner can read. Atomic: after a failure the path still has its old content. */
export function replacePrivateFile(path: string, text: string): void {
  withDraft(path, text, (draft) => renameSync(draft, path));
}

/** The same, but returns false if the file exists. Of several concurrent processes, exactly one succeeds. */
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
  /** What the user should do if the file is rejected or was readable by others. */
  advice: string;
  warn: (message: string) => void;
  /** A user whose files are accepted like our own. */
  trusted?: number | undefined;
}

/**
 * Reads a file that only its owner may read. A file that others could read is made private, with a warning. A file of
 * another user is rejected, even if we are root: that user knows its content.
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
    throw error instanceof NotAFileError ? refusal(`${path} is ${error.kind}, not a file. ${advice}`) : error;
  }
}

/** The same without checking owner and permissions. */
export function readShortFile(path: string): { text: string; stats: Stats } {
  return withRegularFile(path, (file, stats) => ({ text: textOf(file, path), stats }));
}

/** Whether the owner is neither our user nor root. */
export function isOfOthers(uid: number): boolean {
  const user = process.geteuid?.();
  return user !== undefined && uid !== user && uid !== 0;
}

/** Ignores the reported size, which may be 0 for an endless file. */
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
    // Flushed before it gets its final name.
    writeFileSync(draft, text, { mode: PRIVATE, flush: true });
    publish(draft);
  } finally {
    rmSync(draft, { force: true });
  }
  flushFolder(folder);
}

/** Makes the new name durable. Not every file system supports it. */
function flushFolder(folder: string): void {
  let handle: number | undefined;
  try {
    handle = openSync(folder, 'r');
    fsyncSync(handle);
  } catch {
    // The content is flushed already.
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}
