import { describe, expect, it } from 'vitest';
import { connectTo } from '../../test/helpers/database.ts';
import { storeForTests } from '../../test/helpers/store.ts';
import type { NewServer } from './servers.ts';

const { database, store, newProject } = await storeForTests();

function server(name: string, group?: string): NewServer {
  const settings = group === undefined ? {} : { group };
  return { name, description: '', transport: 'stdio', config: { command: 'x' }, settings, enabled: true };
}

async function projectWith(...servers: NewServer[]): Promise<string> {
  const id = await newProject();
  await store.servers.create(id, servers, false);
  return id;
}

const create = (id: string, ...servers: NewServer[]) => store.servers.create(id, servers, false);
const change = (id: string, name: string, changes: Partial<NewServer>) =>
  store.servers.change(id, name, changes, undefined);
const install = (id: string, version: string, ...servers: NewServer[]) =>
  store.products.install(id, { name: 'p', version, manifest: {}, servers }, []);
const namesIn = async (id: string) => (await store.projects.get(id))!.servers.map(({ name }) => name).sort();

function clash(name: string, group: string) {
  const message = `The server "${name}" cannot have this group: "${group}" is also the name of a server outside of the group: rename one of them, or add that server to the group.`;
  return { code: 'conflict', message, data: { names: [name, group] } };
}

describe('a group', () => {
  it('may have the name of one of its members', async () => {
    const id = await projectWith(server('g', 'g'), server('h', 'g'));
    await create(id, server('i', 'g'));
    await change(id, 'g', { name: 'other' });
    await change(id, 'other', { name: 'g' });
    expect(await namesIn(id)).toEqual(['g', 'h', 'i']);
  });

  it('may not have the name of any other server, however that comes about', async () => {
    const id = await projectWith(server('a'), server('b', 'team'));
    await expect(create(id, server('c', 'a'))).rejects.toMatchObject(clash('c', 'a'));
    await expect(create(id, server('d'), server('team'))).rejects.toMatchObject(clash('b', 'team'));
    await expect(create(id, server('x', 'y'), server('y'))).rejects.toMatchObject(clash('x', 'y'));
    await expect(change(id, 'a', { name: 'team' })).rejects.toMatchObject(clash('b', 'team'));
    await expect(change(id, 'b', { settings: { group: 'a' } })).rejects.toMatchObject(clash('b', 'a'));
    await expect(store.servers.create(id, [server('b', 'a')], true)).rejects.toMatchObject(clash('b', 'a'));
    await expect(install(id, '1', server('c', 'a'))).rejects.toMatchObject(clash('c', 'a'));
    await expect(install(id, '1', server('team'))).rejects.toMatchObject(clash('b', 'team'));
    expect(await namesIn(id)).toEqual(['a', 'b']);
    expect(await store.products.list(id)).toEqual([]);
  });

  it('may have the name of a server that the same upgrade removes', async () => {
    const id = await projectWith();
    await install(id, '1', server('crm'));
    await install(id, '2', server('crm-eu', 'crm'), server('crm-us', 'crm'));
    expect(await namesIn(id)).toEqual(['crm-eu', 'crm-us']);
    await install(id, '3', server('crm'), server('crm-us'));
    expect(await namesIn(id)).toEqual(['crm', 'crm-us']);
  });

  it('and a server cannot get the same name concurrently', async () => {
    for (let round = 0; round < 5; round++) {
      const id = await projectWith();
      const both = await Promise.allSettled([create(id, server('a')), create(id, server('b', 'a'))]);
      expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    }
  });

  it('that already has the name of a server does not block other changes', async () => {
    const id = await projectWith(server('a'), server('b'));
    await using client = await connectTo(database.name);
    await client.query(
      `UPDATE kb.project_mcp_servers SET settings = '{"group": "a"}' WHERE project_id = $1 AND name = 'b'`,
      [id],
    );
    await create(id, server('c'));
    await change(id, 'c', { name: 'd', settings: { group: 'team' } });
    await install(id, '1', server('e'));
    for (const name of ['a', 'b']) expect(await change(id, name, { enabled: false })).toMatchObject({ name });
    const settings = { group: 'a', concurrency: 2 };
    await expect(change(id, 'b', { settings })).rejects.toMatchObject(clash('b', 'a'));
    await change(id, 'b', { settings: {} });
  });
});

describe('a prefix', () => {
  const prefixed = (name: string, prefix: string): NewServer => ({ ...server(name), settings: { prefix } });
  const refusal = (name: string, prefix: string, owner: string, other: string) => ({
    code: 'conflict',
    message: `The server "${name}" cannot have this prefix: "${prefix}" is also ${owner}, so tool names would be ambiguous: choose another prefix.`,
    data: { names: [name, other] },
  });

  it('may not be a name, a group or a prefix of another server, however that comes about', async () => {
    const id = await projectWith(server('a'), server('b', 'team'), prefixed('c', 'p'), prefixed('d', 'd'));
    await expect(create(id, prefixed('x', 'a'))).rejects.toMatchObject(
      refusal('x', 'a', 'the name of server "a"', 'a'),
    );
    await expect(create(id, server('p'))).rejects.toMatchObject(
      refusal('c', 'p', 'the name of server "p"', 'p'),
    );
    await expect(change(id, 'a', { settings: { prefix: 'team' } })).rejects.toMatchObject(
      refusal('a', 'team', 'the group of server "b"', 'b'),
    );
    await expect(install(id, '1', prefixed('x', 'p'))).rejects.toMatchObject({ code: 'conflict' });
    expect(await namesIn(id)).toEqual(['a', 'b', 'c', 'd']);
  });
});
