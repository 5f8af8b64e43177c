import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SwitchboardError } from '../errors.ts';
import { createPrivateFile, readPrivateFile } from '../private-files.ts';

const TOKEN_BYTES = 32;
const tokenForm = /^[\w-]{43,}$/;

export function tokenPath(home: string): string {
  return join(home, 'token');
}

/** The token of this home, made where there is none. */
export function openToken(home: string, warn: (message: string) => void): string {
  const path = tokenPath(home);
  if (!existsSync(path)) createPrivateFile(path, `${randomBytes(TOKEN_BYTES).toString('base64url')}\n`);
  const token = readPrivateFile(path, 'Remove it and restart for a new token.', warn)?.trim();
  if (token === undefined) {
    throw new SwitchboardError('invalid_config', `${path} belongs to another user: remove it.`);
  }
  if (tokenForm.test(token)) return token;
  throw new SwitchboardError('invalid_config', `There is no token in ${path}: remove it for a new one.`);
}

/** The token of this home, where there is one. */
export async function readToken(home: string): Promise<string | undefined> {
  const token = (await readFile(tokenPath(home), 'utf8').catch(() => '')).trim();
  return tokenForm.test(token) ? token : undefined;
}
