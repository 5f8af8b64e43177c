import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { join } from 'node:path';
import { SwitchboardError } from '../errors.ts';
import { createPrivateFile, isOfOthers, readShortFile, replacePrivateFile } from '../private-files.ts';
import { codeOf } from './failure.ts';
import { KEY_BYTES, type Key, keyOf, parseKey } from './keys.ts';

/** The encryption keys of secrets. The first one seals; the others only open older secrets. */
export interface Keyring {
  /** The key that seals. Read again each time, because another process may change it. */
  current(): Key;
  find(id: string): Key | undefined;
  /** Whether `current` would create the first key. */
  isEmpty(): boolean;
  /** What to do about a missing key. */
  readonly advice: string;
  /** The same for several secrets. */
  readonly generalAdvice: string;
  /** Adds a new key in front, if the keys are in our file, and returns the key that seals. */
  renew(): Key;
  /** Removes all keys but the first. */
  prune(): void;
}

/** How many keys removed from the file stay in memory: a restored backup may need them. */
const MAX_FORMER = 100;

const howTo = 'Make one with: openssl rand -base64 32';

export function openKeyring(
  home: string,
  secretKey: string | undefined,
  warn: (message: string) => void,
): Keyring {
  return secretKey === undefined ? new KeyFile(join(home, 'secret.key'), warn) : new GivenKeys(secretKey);
}

class GivenKeys implements Keyring {
  readonly advice =
    'Add the key that sealed it to SWITCHBOARD_SECRET_KEY, after a comma, or set the secret again.';
  readonly generalAdvice =
    'Add the keys that sealed them to SWITCHBOARD_SECRET_KEY, after a comma, or delete those secrets.';
  private readonly keys: [Key, ...Key[]];

  constructor(text: string) {
    const keys = text.split(',').map((part) => parseKey(part.trim()));
    const bad = keys.indexOf(undefined);
    if (bad >= 0) {
      const which = keys.length === 1 ? 'SWITCHBOARD_SECRET_KEY' : `Key ${bad + 1} of SWITCHBOARD_SECRET_KEY`;
      throw new SwitchboardError(
        'invalid_config',
        `${which} is not a key: a key is 32 bytes in base64 or hex. ${howTo}`,
      );
    }
    this.keys = keys as [Key, ...Key[]];
  }

  current(): Key {
    return this.keys[0];
  }

  find(id: string): Key | undefined {
    return this.keys.find((key) => key.id === id);
  }

  isEmpty(): boolean {
    return false;
  }

  renew(): Key {
    return this.current();
  }

  prune(): void {}
}

/**
 * One key per line. Several processes may share the file, so it is read again if a key is missing. Keys stay in memory: if
 * the file is deleted, it is restored, and its secrets can still be opened.
 */
class KeyFile implements Keyring {
  readonly advice: string;
  readonly generalAdvice: string;
  private readonly path: string;
  private readonly warn: (message: string) => void;
  /** The keys in the file. */
  private keys: Key[] = [];
  /** The keys in the file, and the latest ones that were removed from it, by id. */
  private readonly seen = new Map<string, Key>();
  private hasWarned = false;

  constructor(path: string, warn: (message: string) => void) {
    this.path = path;
    this.warn = warn;
    this.advice = `Add the key that sealed it to ${path}, as a line of its own, or delete the secret and set it again.`;
    this.generalAdvice = `Restore ${path} as it was, set SWITCHBOARD_SECRET_KEY to the key of the other Switchboards on this database, or delete those secrets.`;
    this.read();
  }

  current(): Key {
    this.read();
    if (this.keys.length === 0) this.create([newKey()]);
    return this.keys[0]!;
  }

  find(id: string): Key | undefined {
    if (!this.seen.has(id)) this.read();
    return this.seen.get(id);
  }

  isEmpty(): boolean {
    this.read();
    return this.keys.length === 0;
  }

  renew(): Key {
    this.read();
    const key = newKey();
    this.replace([key, ...this.keys]);
    return key;
  }

  prune(): void {
    this.read();
    this.replace(this.keys.slice(0, 1));
  }

  private read(): void {
    let text: string;
    try {
      const file = readShortFile(this.path);
      text = file.text;
      this.checkReaders(file.stats);
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(String(codeOf(error)))) throw this.failure(error as Error);
      if (this.keys.length > 0) this.restore();
      return;
    }
    const lines = text.split('\n').map((line) => line.trim());
    const keys = lines.flatMap((line, index) => {
      if (line === '') return [];
      const key = parseKey(line);
      if (key !== undefined) return [key];
      throw new SwitchboardError(
        'invalid_config',
        `Line ${index + 1} of ${this.path} is not a key: a key is 32 bytes in base64 or hex. Restore the file; without its keys, secrets are lost.`,
      );
    });
    if (keys.length > 0) {
      this.keep(keys);
      return;
    }
    throw new SwitchboardError(
      'invalid_config',
      `${this.path} is empty. Restore the file; without its keys, secrets are lost. If there are no secrets, delete it.`,
    );
  }

  private keep(keys: Key[]): void {
    this.keys = keys;
    for (const key of keys) {
      const known = this.seen.get(key.id) ?? key;
      // Moves the file's keys to the end, because the first ones are evicted.
      this.seen.delete(key.id);
      this.seen.set(key.id, known);
    }
    for (const id of this.seen.keys()) {
      if (this.seen.size <= keys.length + MAX_FORMER) return;
      this.seen.delete(id);
    }
  }

  /** Without the file, the secrets would be lost when this process ends. */
  private restore(): void {
    this.create(this.keys);
    this.warn(`The key file of secrets was missing, and was restored: ${this.path}`);
  }

  private checkReaders({ mode, uid }: Stats): void {
    if (this.hasWarned || ((mode & 0o077) === 0 && !isOfOthers(uid))) return;
    this.hasWarned = true;
    const change = isOfOthers(uid) ? `chown ${process.geteuid?.()} ${this.path} && ` : '';
    this.warn(`Other users can read the key of all secrets: run ${change}chmod 600 ${this.path}`);
  }

  /** If two processes create the file at the same time, the second uses the first one's key. */
  private create(keys: Key[]): void {
    this.write(() => createPrivateFile(this.path, textOf(keys)));
    this.read();
  }

  private replace(keys: Key[]): void {
    this.write(() => replacePrivateFile(this.path, textOf(keys)));
    this.keep(keys);
  }

  private write(work: () => void): void {
    try {
      work();
    } catch (error) {
      throw new SwitchboardError(
        'key_file_failed',
        `The key file of secrets, ${this.path}, cannot be written: ${(error as Error).message}. The file and the secrets are unchanged. Fix that, or set SWITCHBOARD_SECRET_KEY.`,
        { cause: error },
      );
    }
  }

  private failure(error: Error): SwitchboardError {
    return new SwitchboardError(
      'invalid_config',
      `The key file of secrets cannot be used: ${error.message}. Fix that, or set SWITCHBOARD_SECRET_KEY.`,
      { cause: error },
    );
  }
}

function textOf(keys: Key[]): string {
  return keys.map(({ bytes }) => `${bytes.toString('base64')}\n`).join('');
}

function newKey(): Key {
  return keyOf(randomBytes(KEY_BYTES));
}
