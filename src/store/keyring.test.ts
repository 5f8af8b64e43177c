import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requireOtherUser } from '../../test/helpers/other-user.ts';
import { openKeyring } from './keyring.ts';
import { keyOf } from './keys.ts';

const silent = () => {};

describe('configured keys', () => {
  const [first, second] = [randomBytes(32), randomBytes(32)];

  it('seal with the first one, and open with all', () => {
    const keyring = openKeyring('/', `${first.toString('base64')}, ${second.toString('hex')}`, silent);
    expect(keyring.current()).toEqual(keyOf(first));
    expect(keyring.find(keyOf(second).id)).toEqual(keyOf(second));
    expect(keyring.find('unknown')).toBe(undefined);
    expect(keyring.renew()).toEqual(keyOf(first));
  });

  it.each(['hunter2', '', `${first.toString('base64')},hunter2`])(
    'are rejected with a hint how to create one, and without showing them: %j',
    (text) => {
      const open = () => openKeyring('/', text, silent);
      expect(open).toThrow(/SWITCHBOARD_SECRET_KEY is not a key.*openssl rand -base64 32/);
      expect(open).not.toThrow(/hunter2/);
    },
  );
});

describe('a key file', () => {
  let home: string;
  const path = () => join(home, 'secret.key');
  const open = () => openKeyring(home, undefined, silent);

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'switchboard-keys-'));
  });
  afterEach(() => rmSync(home, { recursive: true }));

  it('is created when a key is first needed, for its owner only', () => {
    const keyring = open();
    expect(readdirSync(home)).toEqual([]);
    keyring.current();
    expect(readdirSync(home)).toEqual(['secret.key']);
    expect(statSync(path()).mode & 0o777).toBe(0o600);
  });

  it('is created once by concurrent processes', () => {
    const keyrings = [open(), open(), open()];
    const keys = keyrings.map((keyring) => keyring.current());
    expect(new Set(keys.map(({ id }) => id)).size).toBe(1);
  });

  it('keeps old keys when a new one is created, until they are pruned', () => {
    const keyring = open();
    const old = keyring.current();
    const key = keyring.renew();
    expect(key.id).not.toBe(old.id);
    expect(open().current()).toEqual(key);
    expect(open().find(old.id)).toEqual(old);
    keyring.prune();
    expect(open().find(old.id)).toBe(undefined);
    expect(open().current()).toEqual(key);
    expect(readdirSync(home)).toEqual(['secret.key']);
  });

  it('keeps each key in separate memory, and remembers a hundred former keys', () => {
    const keyring = open();
    const ids = Array.from({ length: 103 }, () => {
      const { id, bytes } = keyring.renew();
      expect(bytes.buffer.byteLength).toBe(32);
      keyring.prune();
      return id;
    });
    expect(keyring.find(ids[0]!)).toBe(undefined);
    expect(ids.slice(2).every((id) => keyring.find(id)?.bytes.buffer.byteLength === 32)).toBe(true);
    expect(keyring.current().id).toBe(ids.at(-1));
  });

  it('is reloaded when another process has changed it', () => {
    const [one, other] = [open(), open()];
    one.current();
    const key = other.renew();
    expect(one.find(key.id)).toEqual(key);
    expect(one.current()).toEqual(key);
  });

  it('that is missing is restored with its former keys, with a warning', () => {
    const warnings: string[] = [];
    const keyring = openKeyring(home, undefined, (warning) => warnings.push(warning));
    expect(keyring.isEmpty()).toBe(true);
    const old = keyring.current();
    const key = keyring.renew();
    const text = readFileSync(path(), 'utf8');
    for (const use of [() => keyring.current(), () => keyring.find('unknown'), () => keyring.isEmpty()]) {
      rmSync(path());
      use();
      expect(readFileSync(path(), 'utf8')).toBe(text);
      expect(statSync(path()).mode & 0o777).toBe(0o600);
    }
    expect(keyring.current()).toEqual(key);
    expect(keyring.find(old.id)).toEqual(old);
    expect(keyring.isEmpty()).toBe(false);
    expect(readdirSync(home)).toEqual(['secret.key']);
    expect(warnings).toHaveLength(3);
    expect(warnings[0]).toBe(`The key file of secrets was missing, and was restored: ${path()}`);
  });

  it('that was replaced does not make its former keys forgotten', () => {
    const keyring = open();
    const old = keyring.current();
    rmSync(path());
    const other = open().current();
    expect(keyring.current()).toEqual(other);
    expect(keyring.find(old.id)).toEqual(old);
  });

  it.each([
    ['another text', 'hunter2\n', /Line 1 of .*secret.key is not a key/],
    ['nothing', '', /secret.key is empty/],
  ])('with %s is rejected, and stays unchanged', (_what, text, message) => {
    writeFileSync(path(), text, { mode: 0o600 });
    expect(open).toThrow(message);
    expect(open).not.toThrow(/hunter2/);
    expect(readFileSync(path(), 'utf8')).toBe(text);
  });

  it('that others can read causes a warning', () => {
    open().current();
    chmodSync(path(), 0o644);
    const warnings: string[] = [];
    openKeyring(home, undefined, (warning) => warnings.push(warning)).current();
    expect(warnings).toEqual([`Other users can read the key of all secrets: run chmod 600 ${path()}`]);
  });

  it('that belongs to another user causes a warning', (test) => {
    requireOtherUser(test);
    open().current();
    chownSync(path(), 65_534, 65_534);
    const warnings: string[] = [];
    openKeyring(home, undefined, (warning) => warnings.push(warning)).current();
    expect(warnings).toEqual([
      `Other users can read the key of all secrets: run chown 0 ${path()} && chmod 600 ${path()}`,
    ]);
  });

  it.each([
    ['a folder', () => mkdirSync(path()), /secret.key is a folder, not a file\. .*SWITCHBOARD_SECRET_KEY/],
    ['a device', () => symlinkSync('/dev/null', path()), /secret.key is a device, not a file/],
    ['too large', () => writeFileSync(path(), 'A'.repeat(65_537)), /secret.key is over 65536 bytes/],
  ])('that is %s is rejected', (_what, make, message) => {
    make();
    expect(open).toThrow(message);
  });

  it('that cannot be created is an error with an alternative', () => {
    const keyring = openKeyring(join(path(), 'file', 'below'), undefined, silent);
    writeFileSync(path(), 'a file where a folder should be');
    expect(() => keyring.current()).toThrow(
      /key file of secrets, .*cannot be written: .*SWITCHBOARD_SECRET_KEY/,
    );
  });
});
