import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Secret scanners find keys by it. */
export const KEY_PREFIX = 'sbk_';
const ID_BYTES = 9;
const SECRET_BYTES = 32;
const pattern = /^sbk_([A-Za-z0-9_-]{12})[A-Za-z0-9_-]{43}$/;

/** `sbk_`, a public id of 12 characters, and a secret of 256 random bits. */
export interface NewKey {
  id: string;
  text: string;
  hash: Buffer;
}

export function newKey(): NewKey {
  const id = randomBytes(ID_BYTES).toString('base64url');
  const text = KEY_PREFIX + id + randomBytes(SECRET_BYTES).toString('base64url');
  return { id, text, hash: hashOf(text) };
}

/** The public id of a key; undefined if the text is no key. */
export function keyIdOf(text: string): string | undefined {
  return pattern.exec(text)?.[1];
}

/** Also where the underscore is percent-encoded. Whatever follows the public id belongs to the secret. */
const keyInText = /sbk(_|%5[fF])([A-Za-z0-9_-]{12})[A-Za-z0-9_-]+/g;

/** Leaves only the public ids of keys, for texts that are shown or written down: `sbk_<id>…`. */
export function maskKeys(text: string): string {
  return text.includes('sbk') ? text.replace(keyInText, 'sbk$1$2…') : text;
}

/** The hash of no key, so that a comparison with none takes as long. */
const noHash = randomBytes(32);

/** In constant time. */
export function isKey(text: string, hash: Buffer | undefined): boolean {
  const given = hashOf(text);
  // A hash of another length is damaged, and would throw.
  return timingSafeEqual(given, hash?.length === given.length ? hash : noHash);
}

/** A random secret of this length needs no slow hash. */
function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
