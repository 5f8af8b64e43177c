import { describe, expect, it } from 'vitest';
import { connectTo, freshDatabase } from '../../test/helpers/database.ts';
import { openTestStore, storeForTests } from '../../test/helpers/store.ts';
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

async function switchesOf(id: string): Promise<string[]> {
  const { switches } = (await store.projects.get(id))!;
  return switches.map(({ server_name, tool_name }) => `${server_name}/${tool_name}`).sort();
}

const switchOff = (id: string, owner: string, tool: string | null) =>
  store.projects.setSwitch(id, owner, tool, false);
const rename = (id: string, from: string, to: string) =>
  store.servers.change(id, from, { name: to }, undefined);
const regroup = (id: string, name: string, group?: string) =>
  store.servers.change(id, name, { settings: server(name, group).settings }, undefined);

describe('switches', () => {
  it('are stored once, however often something is switched off', async () => {
    const id = await projectWith(server('one'));
    await switchOff(id, 'one', 'tool');
    await switchOff(id, 'one', 'tool');
    await switchOff(id, 'file', null);
    expect(await switchesOf(id)).toEqual(['file/null', 'one/tool']);
    await store.projects.setSwitch(id, 'file', null, true);
    expect(await switchesOf(id)).toEqual(['one/tool']);
  });

  it('stay when a server is removed in any way', async () => {
    const id = await projectWith(server('one'));
    const product = { name: 'p', version: '1', manifest: {} };
    await store.products.install(id, { ...product, servers: [server('two'), server('three')] }, []);
    for (const name of ['one', 'two', 'three']) await switchOff(id, name, 'tool');
    await store.servers.delete(id, 'one', undefined);
    await store.products.install(id, { ...product, version: '2', servers: [server('three')] }, []);
    await store.products.remove(id, 'p');
    expect(await switchesOf(id)).toEqual(['one/tool', 'three/tool', 'two/tool']);
  });

  it('follow a rename, except those of a whole server', async () => {
    const id = await projectWith(server('one'));
    await switchOff(id, 'one', 'tool');
    await switchOff(id, 'one', null);
    await rename(id, 'one', 'two');
    expect(await switchesOf(id)).toEqual(['one/null', 'two/tool']);
  });

  it('of a group stay with it when a server of the same name is renamed or removed', async () => {
    const id = await projectWith(server('g', 'g'), server('h', 'g'));
    await switchOff(id, 'g', 'tool');
    await rename(id, 'g', 'other');
    expect(await switchesOf(id)).toEqual(['g/tool']);
    await store.servers.delete(id, 'other', undefined);
    expect(await switchesOf(id)).toEqual(['g/tool']);
  });

  it('follow a server into a group and out of it', async () => {
    const id = await projectWith(server('a'), server('b', 'team'));
    await switchOff(id, 'a', 'x');
    await switchOff(id, 'team', 'y');
    await regroup(id, 'a', 'team');
    expect(await switchesOf(id)).toEqual(['team/x', 'team/y']);
    await regroup(id, 'a');
    expect(await switchesOf(id)).toEqual(['a/x', 'a/y', 'team/x', 'team/y']);
    await regroup(id, 'b');
    expect(await switchesOf(id)).toEqual(['a/x', 'a/y', 'b/x', 'b/y']);
  });

  it('follow each of several servers that one statement changes', async () => {
    const id = await projectWith(server('a', 'team'), server('b', 'team'));
    await switchOff(id, 'team', 'x');
    await using client = await connectTo(database.name);
    await client.query("UPDATE kb.project_mcp_servers SET settings = '{}' WHERE project_id = $1", [id]);
    expect(await switchesOf(id)).toEqual(['a/x', 'b/x']);
  });

  it('are not affected by any other change, even for names that no longer exist', async () => {
    const id = await projectWith(server('a'));
    await switchOff(id, 'a', 'x');
    await switchOff(id, 'gone', 'x');
    await store.servers.change(id, 'a', { description: 'new', enabled: false }, undefined);
    expect(await switchesOf(id)).toEqual(['a/x', 'gone/x']);
  });

  it('do not block a rename if the new name has the same switch', async () => {
    const id = await projectWith(server('y'));
    await switchOff(id, 'y', 'tool');
    await switchOff(id, 'z', 'tool');
    expect(await rename(id, 'y', 'z')).toMatchObject({ name: 'z' });
    expect(await switchesOf(id)).toEqual(['z/tool']);
  });
});

it('reports a name as taken only if it is', async () => {
  await using own = await freshDatabase();
  await using other = await openTestStore({ url: own.url });
  const { id } = await other.projects.create({ name: 'p' });
  await other.servers.create(id, [server('a'), server('b')], false);
  await using client = await connectTo(own.name);
  await client.query('CREATE UNIQUE INDEX strange ON kb.project_mcp_servers (left(name, 1))');
  const change = other.servers.change(id, 'a', { name: 'bb' }, undefined);
  await expect(change).rejects.toMatchObject({ code: '23505', constraint: 'strange' });
});
