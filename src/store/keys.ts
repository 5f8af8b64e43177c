import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
export const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface Key {
  /** Identifies the key without revealing it. */
  id: string;
  bytes: Buffer;
}

export interface Sealed {
  key_id: string;
  nonce: Buffer;
  /** Ends with the authentication tag. */
  ciphertext: Buffer;
}

export function keyOf(bytes: Buffer): Key {
  const id = createHash('sha256').update('switchboard key id\n').update(bytes).digest('hex').slice(0, 12);
  // Not from the shared pool: a small buffer would keep 64 KiB alive.
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return { id, bytes: own };
}

/** Accepts base64, base64url and hex; undefined if it is not a key. */
export function parseKey(text: string): Key | undefined {
  if (/^[\da-f]{64}$/i.test(text)) return keyOf(Buffer.from(text, 'hex'));
  // 32 bytes are 43 characters and padding; the last two bits of the 43rd must be 0.
  if (!/^[\w+/-]{42}[AEIMQUYcgkosw048]=?$/.test(text)) return undefined;
  return keyOf(Buffer.from(text.replaceAll('-', '+').replaceAll('_', '/'), 'base64'));
}

/** `place` binds the value to its project and name: elsewhere it cannot be opened. */
export function seal(value: string, key: Key, place: string): Sealed {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key.bytes, nonce).setAAD(Buffer.from(place));
  const ciphertext = Buffer.concat([cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return { key_id: key.id, nonce, ciphertext };
}

/** Throws if the key, the place or any byte differs. */
export function unseal({ nonce, ciphertext }: Sealed, key: Key, place: string): string {
  const decipher = createDecipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(place))
    .setAuthTag(ciphertext.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(ciphertext.subarray(0, -TAG_BYTES)), decipher.final()]).toString(
    'utf8',
  );
}
