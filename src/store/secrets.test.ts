import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { connectTo, freshDatabase } from '../../test/helpers/database.ts';
import { defaultProjectOf, openTestStore } from '../../test/helpers/store.ts';
import type { Store } from './store.ts';

async function sealedIn(store: Store, projectId: string) {
  return (await store.projects.get(projectId))!.secrets;
}

describe('a secret', () => {
  it('is stored sealed, and gets a new version with each change', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    expect(await store.secrets.put(id, 'TOKEN', 'hunter2 ü')).toEqual({ created: true });
    const [first] = await sealedIn(store, id);
    expect(store.secrets.open(first!)).toBe('hunter2 ü');
    expect(await store.secrets.put(id, 'TOKEN', 'hunter3')).toEqual({ created: false });
    const [second] = await sealedIn(store, id);
    expect(store.secrets.open(second!)).toBe('hunter3');
    expect(second!.version).not.toBe(first!.version);
    await using client = await connectTo(database.name);
    const { rows } = await client.query('SELECT secrets::text AS row FROM kb.secrets');
    expect(rows[0].row).not.toContain('hunter');
    expect(rows[0].row).not.toContain(Buffer.from('hunter').toString('hex'));
  });

  it('that is set to the same value stays unchanged', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.secrets.put(id, 'TOKEN', 'hunter2');
    const before = await sealedIn(store, id);
    expect(await store.secrets.put(id, 'TOKEN', 'hunter2')).toEqual({ created: false });
    expect(await sealedIn(store, id)).toEqual(before);
  });

  it('that cannot be opened is changed by any value', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.secrets.put(id, 'TOKEN', 'hunter2');
    const [before] = await sealedIn(store, id);
    const secretKey = randomBytes(32).toString('base64');
    await using stranger = await openTestStore({ url: database.url, secretKey });
    expect(await stranger.secrets.put(id, 'TOKEN', 'hunter2')).toEqual({ created: false });
    const [after] = await sealedIn(stranger, id);
    expect(after!.version).not.toBe(before!.version);
    expect(stranger.secrets.open(after!)).toBe('hunter2');
  });

  it('cannot be moved to another project or name', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.secrets.put(id, 'TOKEN', 'hunter2');
    const [sealed] = await sealedIn(store, id);
    expect(() => store.secrets.open({ ...sealed!, name: 'OTHER' })).toThrow(
      'The secret "OTHER" cannot be decrypted',
    );
  });

  it.each([
    ['1NAME', 'value', 'name'],
    ['NAME-1', 'value', 'name'],
    ['', 'value', 'name'],
    ['N'.repeat(129), 'value', 'name'],
    ['NAME', '', 'value'],
    ['NAME', 'v'.repeat(65_537), 'value'],
  ])('has a limited name and size: %.8s, %.8s', async (name, value, path) => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    const put = async () => store.secrets.put(id, name, value);
    await expect(put()).rejects.toMatchObject({ code: 'invalid_input', data: { problems: [{ path }] } });
    await store.secrets.put(id, 'N'.repeat(128), 'v'.repeat(65_536));
  });

  it('that is deleted is gone', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.secrets.put(id, 'TOKEN', 'hunter2');
    await store.secrets.delete(id, 'TOKEN');
    expect(await sealedIn(store, id)).toEqual([]);
    await expect(store.secrets.delete(id, 'TOKEN')).rejects.toMatchObject({
      message: 'There is no secret "TOKEN" in project "default".',
    });
  });

  it('without its key is an error that names the key', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.secrets.put(id, 'TOKEN', 'hunter2');
    const secretKey = randomBytes(32).toString('base64');
    await using stranger = await openTestStore({ url: database.url, secretKey });
    const [sealed] = await sealedIn(stranger, id);
    expect(() => stranger.secrets.open(sealed!)).toThrow(
      'The secret "TOKEN" was sealed with a key that is missing. Add the key that sealed it to SWITCHBOARD_SECRET_KEY',
    );
    await expect(stranger.secrets.rotate()).rejects.toMatchObject({ code: 'invalid_config' });
    expect(store.secrets.open((await sealedIn(store, id))[0]!)).toBe('hunter2');
  });
});

describe('a missing key file', () => {
  it('is restored while a process still has its keys', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.secrets.put(id, 'ONE', 'first value');
    rmSync(join(store.home, 'secret.key'));
    await store.secrets.put(id, 'TWO', 'second value');
    expect(store.told).toEqual([expect.stringContaining('was missing, and was restored')]);
    await using again = await openTestStore({ url: database.url, home: store.home });
    expect((await sealedIn(again, id)).map((sealed) => again.secrets.open(sealed))).toEqual([
      'first value',
      'second value',
    ]);
    expect(again.told).toEqual([]);
  });

  it('causes a warning, and no new key replaces it while secrets use the old one', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.secrets.put(id, 'ONE', 'first value');
    const [{ key_id } = { key_id: '' }] = await sealedIn(store, id);
    await using stranger = await openTestStore({ url: database.url });
    const file = join(stranger.home, 'secret.key');
    const found = `Some secrets were sealed with keys that are missing (${key_id}): "ONE" of project "default".`;
    const advice = `Restore ${file} as it was, set SWITCHBOARD_SECRET_KEY to the key of the other Switchboards on this database, or delete those secrets.`;
    expect(stranger.told).toEqual([`warned: ${found} ${advice}`]);
    for (const name of ['ONE', 'TWO']) {
      await expect(stranger.secrets.put(id, name, 'value')).rejects.toMatchObject({
        code: 'conflict',
        message: `${found} Therefore no new key was created, and the secret was not stored. ${advice}`,
        data: { key_ids: [key_id] },
      });
    }
    expect(existsSync(file)).toBe(false);
    await stranger.secrets.delete(id, 'ONE');
    expect(await stranger.secrets.put(id, 'ONE', 'value')).toEqual({ created: true });
    expect(existsSync(file)).toBe(true);
  });

  it('is created by only one of several processes on a shared database', async () => {
    await using database = await freshDatabase();
    await using one = await openTestStore({ url: database.url });
    await using other = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(one);
    const { id: second } = await one.projects.create({ name: 'second' });
    const puts = await Promise.allSettled([
      one.secrets.put(id, 'A', 'a'),
      other.secrets.put(second, 'B', 'b'),
    ]);
    expect(puts.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
});

describe('a rotation', () => {
  it('seals all secrets with a new key of the file, and removes the old one', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    await using other = await openTestStore({ url: database.url, home: store.home });
    const id = await defaultProjectOf(store);
    const { id: second } = await store.projects.create({ name: 'second' });
    await store.secrets.put(id, 'ONE', 'first value');
    await store.secrets.put(second, 'TWO', 'second value');
    const file = () => readFileSync(join(store.home, 'secret.key'), 'utf8').trim().split('\n');
    const [oldKey] = file();
    const [before] = await sealedIn(store, id);

    const { rotated, keyId } = await store.secrets.rotate();
    expect(rotated).toBe(2);
    const [after] = await sealedIn(store, id);
    expect(after).toEqual({
      ...before,
      ...{ key_id: keyId, nonce: after!.nonce, ciphertext: after!.ciphertext },
    });
    expect(after!.ciphertext).not.toEqual(before!.ciphertext);
    expect(file()).toHaveLength(1);
    expect(file()).not.toContain(oldKey);
    for (const reader of [store, other]) {
      expect(reader.secrets.open((await sealedIn(reader, id))[0]!)).toBe('first value');
      expect(reader.secrets.open((await sealedIn(reader, second))[0]!)).toBe('second value');
    }
    await other.secrets.put(id, 'THREE', 'third value');
    expect((await sealedIn(store, id)).every(({ key_id }) => key_id === keyId)).toBe(true);
  });

  it('moves to the first of the configured keys', async () => {
    await using database = await freshDatabase();
    const [oldKey, newKey] = [randomBytes(32), randomBytes(32)].map((key) => key.toString('base64'));
    await using before = await openTestStore({ url: database.url, secretKey: oldKey! });
    const id = await defaultProjectOf(before);
    await before.secrets.put(id, 'ONE', 'value');
    await using between = await openTestStore({ url: database.url, secretKey: `${newKey},${oldKey}` });
    expect(between.secrets.open((await sealedIn(between, id))[0]!)).toBe('value');
    await between.secrets.rotate();
    await using after = await openTestStore({ url: database.url, secretKey: newKey! });
    expect(after.secrets.open((await sealedIn(after, id))[0]!)).toBe('value');
  });

  it('keeps secrets that are set meanwhile', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    await using other = await openTestStore({ url: database.url, home: store.home });
    const id = await defaultProjectOf(store);
    const names = Array.from({ length: 40 }, (_, index) => `SECRET_${index}`);
    await Promise.all([
      ...names.map((name, index) => (index % 2 ? store : other).secrets.put(id, name, `value of ${name}`)),
      store.secrets.rotate(),
      other.secrets.rotate(),
      store.secrets.rotate(),
    ]);
    for (const reader of [store, other]) {
      for (const sealed of await sealedIn(reader, id)) {
        expect(reader.secrets.open(sealed)).toBe(`value of ${sealed.name}`);
      }
    }
    expect(await sealedIn(store, id)).toHaveLength(names.length);
  });
});
