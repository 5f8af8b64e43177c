import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SwitchboardError } from '../errors.ts';
import { createPrivateFile, isOfOthers, readPrivateFile, readShortFile } from '../private-files.ts';

const TOKEN_BYTES = 32;
const tokenForm = /^[\w-]{43,}$/;

export function tokenPath(home: string): string {
  return join(home, 'token');
}

/** Returns the token of this home. Creates one if necessary. */
export function openToken(home: string, warn: (message: string) => void): string {
  const path = tokenPath(home);
  if (!existsSync(path)) createPrivateFile(path, `${randomBytes(TOKEN_BYTES).toString('base64url')}\n`);
  const advice = 'Delete it and restart to create a new token.';
  const token = readPrivateFile(path, { advice, warn }).trim();
  if (tokenForm.test(token)) return token;
  throw new SwitchboardError(
    'invalid_config',
    `There is no token in ${path}: delete the file to create a new one.`,
  );
}

/** Returns the token only if it exists and `openToken` would accept it. */
export function readToken(home: string): string | undefined {
  try {
    const { text, stats } = readShortFile(tokenPath(home));
    const token = text.trim();
    return tokenForm.test(token) && !isOfOthers(stats.uid) ? token : undefined;
  } catch {
    return undefined;
  }
}
