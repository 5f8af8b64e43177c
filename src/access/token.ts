import { randomBytes } from 'node:crypto';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SwitchboardError } from '../errors.ts';
import { createPrivateFile } from '../private-files.ts';

const TOKEN_BYTES = 32;
const tokenForm = /^[\w-]{43,}$/;
const PRIVATE = 0o600;

export function tokenPath(home: string): string {
  return join(home, 'token');
}

/**
 * The token of this home, made where there is none. One that others could read is made private; one that was put there
 * by somebody else is refused.
 */
export async function openToken(home: string, warn: (message: string) => void): Promise<string> {
  const path = tokenPath(home);
  const file = await open(path, 'r').catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    createPrivateFile(path, `${randomBytes(TOKEN_BYTES).toString('base64url')}\n`);
    return open(path, 'r');
  });
  try {
    await makePrivate(file, path, warn);
    const token = (await file.readFile('utf8')).trim();
    if (tokenForm.test(token)) return token;
    throw new SwitchboardError('invalid_config', `There is no token in ${path}: remove it for a new one.`);
  } finally {
    await file.close();
  }
}

/** The token of this home, where there is one. */
export async function readToken(home: string): Promise<string | undefined> {
  const token = (await readFile(tokenPath(home), 'utf8').catch(() => '')).trim();
  return tokenForm.test(token) ? token : undefined;
}

async function makePrivate(file: FileHandle, path: string, warn: (message: string) => void): Promise<void> {
  const { mode, uid } = await file.stat();
  const user = process.geteuid?.();
  if (user !== undefined && user !== 0 && uid !== user && uid !== 0) {
    throw new SwitchboardError('invalid_config', `${path} belongs to another user: remove it.`);
  }
  if (user === undefined || (mode & 0o077) === 0) return;
  await file.chmod(PRIVATE);
  warn(`${path} could be read by other users; now it cannot. Remove it and restart for a new token.`);
}
