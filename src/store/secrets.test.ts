import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { connectTo, freshDatabase } from '../../test/helpers/database.ts';
import { defaultProjectOf, openTestStore } from '../../test/helpers/store.ts';
import type { Store } from './types.ts';

async function sealedIn(store: Store, projectId: string) {
  return (await store.project(projectId))!.secrets;
}

describe('a secret', () => {
  it('is kept sealed, and has another version after each change', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    expect(await store.putSecret(id, 'TOKEN', 'hunter2 ü')).toEqual({ created: true });
    const [first] = await sealedIn(store, id);
    expect(store.openSecret(first!)).toBe('hunter2 ü');
    expect(await store.putSecret(id, 'TOKEN', 'hunter3')).toEqual({ created: false });
    const [second] = await sealedIn(store, id);
    expect(store.openSecret(second!)).toBe('hunter3');
    expect(second!.version).not.toBe(first!.version);
    await using client = await connectTo(database.name);
    const { rows } = await client.query('SELECT secrets::text AS row FROM kb.secrets');
    expect(rows[0].row).not.toContain('hunter');
    expect(rows[0].row).not.toContain(Buffer.from('hunter').toString('hex'));
  });

  it('cannot be moved to another project or name', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.putSecret(id, 'TOKEN', 'hunter2');
    const [sealed] = await sealedIn(store, id);
    expect(() => store.openSecret({ ...sealed!, name: 'OTHER' })).toThrow(
      'The secret "OTHER" cannot be opened',
    );
  });

  it.each([
    ['1NAME', 'value', 'name'],
    ['NAME-1', 'value', 'name'],
    ['', 'value', 'name'],
    ['N'.repeat(129), 'value', 'name'],
    ['NAME', '', 'value'],
    ['NAME', 'v'.repeat(65_537), 'value'],
  ])('has a name and a size: %.8s, %.8s', async (name, value, path) => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    const put = async () => store.putSecret(id, name, value);
    await expect(put()).rejects.toMatchObject({ code: 'invalid_input', data: { problems: [{ path }] } });
    await store.putSecret(id, 'N'.repeat(128), 'v'.repeat(65_536));
  });

  it('that is deleted is gone', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.putSecret(id, 'TOKEN', 'hunter2');
    await store.deleteSecret(id, 'TOKEN');
    expect(await sealedIn(store, id)).toEqual([]);
    await expect(store.deleteSecret(id, 'TOKEN')).rejects.toMatchObject({
      message: 'There is no secret "TOKEN" in project "default".',
    });
  });

  it('whose key is not there is an error that names it', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    await store.putSecret(id, 'TOKEN', 'hunter2');
    const secretKey = randomBytes(32).toString('base64');
    await using stranger = await openTestStore({ url: database.url, secretKey });
    const [sealed] = await sealedIn(stranger, id);
    expect(() => stranger.openSecret(sealed!)).toThrow(
      'The secret "TOKEN" was sealed with a key that is not here. Add the key that sealed it to SWITCHBOARD_SECRET_KEY',
    );
    await expect(stranger.rotateSecrets()).rejects.toMatchObject({ code: 'invalid_config' });
    expect(store.openSecret((await sealedIn(store, id))[0]!)).toBe('hunter2');
  });
});

describe('a rotation', () => {
  it('seals all with a new key of the file, and forgets the old one', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    await using other = await openTestStore({ url: database.url, home: store.home });
    const id = await defaultProjectOf(store);
    const { id: second } = await store.createProject({ name: 'second' });
    await store.putSecret(id, 'ONE', 'first value');
    await store.putSecret(second, 'TWO', 'second value');
    const file = () => readFileSync(join(store.home, 'secret.key'), 'utf8').trim().split('\n');
    const [oldKey] = file();
    const [before] = await sealedIn(store, id);

    const { rotated, keyId } = await store.rotateSecrets();
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
      expect(reader.openSecret((await sealedIn(reader, id))[0]!)).toBe('first value');
      expect(reader.openSecret((await sealedIn(reader, second))[0]!)).toBe('second value');
    }
    await other.putSecret(id, 'THREE', 'third value');
    expect((await sealedIn(store, id)).every(({ key_id }) => key_id === keyId)).toBe(true);
  });

  it('moves to the first of the keys that are given', async () => {
    await using database = await freshDatabase();
    const [oldKey, newKey] = [randomBytes(32), randomBytes(32)].map((key) => key.toString('base64'));
    await using before = await openTestStore({ url: database.url, secretKey: oldKey! });
    const id = await defaultProjectOf(before);
    await before.putSecret(id, 'ONE', 'value');
    await using between = await openTestStore({ url: database.url, secretKey: `${newKey},${oldKey}` });
    expect(between.openSecret((await sealedIn(between, id))[0]!)).toBe('value');
    await between.rotateSecrets();
    await using after = await openTestStore({ url: database.url, secretKey: newKey! });
    expect(after.openSecret((await sealedIn(after, id))[0]!)).toBe('value');
  });

  it('loses nothing that is set meanwhile', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    await using other = await openTestStore({ url: database.url, home: store.home });
    const id = await defaultProjectOf(store);
    const names = Array.from({ length: 40 }, (_, index) => `SECRET_${index}`);
    await Promise.all([
      ...names.map((name, index) => (index % 2 ? store : other).putSecret(id, name, `value of ${name}`)),
      store.rotateSecrets(),
      other.rotateSecrets(),
      store.rotateSecrets(),
    ]);
    for (const reader of [store, other]) {
      for (const sealed of await sealedIn(reader, id)) {
        expect(reader.openSecret(sealed)).toBe(`value of ${sealed.name}`);
      }
    }
    expect(await sealedIn(store, id)).toHaveLength(names.length);
  });
});
