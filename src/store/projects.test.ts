import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { connectTo } from '../../test/helpers/database.ts';
import { defaultProjectOf, storeForTests } from '../../test/helpers/store.ts';
import type { NewServer } from './servers.ts';

const stdio: NewServer = {
  name: 'time',
  description: 'Tells the time',
  transport: 'stdio',
  config: { command: 'uvx', args: ['mcp-server-time'], env: { ZONE: 'UTC' } },
  settings: { concurrency: 2 },
  enabled: true,
};

const { database, store } = await storeForTests();
let count = 0;

const newProject = () => store.projects.create({ name: `project-${++count}` });
const named = (...names: string[]) => names.map((name) => ({ ...stdio, name }));
const namesIn = async (id: string) => (await store.projects.get(id))!.servers.map(({ name }) => name);

describe('a project', () => {
  it('has the given values and defaults', async () => {
    const project = await store.projects.create({
      name: 'made',
      description: 'For a test',
      retention_days: null,
    });
    expect(project).toEqual({
      id: expect.any(String),
      name: 'made',
      description: 'For a test',
      names: 'model-safe',
      record_payloads: false,
      retention_days: null,
      version: 1,
      created_at: expect.any(Date),
      updated_at: expect.any(Date),
    });
    expect(await store.projects.get(project.id)).toEqual({
      ...{ project, servers: [], hosted: [], products: [], switches: [], secrets: [] },
    });
  });

  it('has a unique name', async () => {
    const { name } = await newProject();
    const other = await newProject();
    const taken = {
      code: 'conflict',
      message: `There is a project "${name}" already.`,
      data: { names: [name] },
    };
    await expect(store.projects.create({ name })).rejects.toMatchObject(taken);
    await expect(store.projects.change(other.id, { name }, undefined)).rejects.toMatchObject(taken);
  });

  it('changes only in the expected version', async () => {
    const { id, name } = await newProject();
    const changed = await store.projects.change(id, { record_payloads: true }, 1);
    expect(changed).toMatchObject({ name, record_payloads: true, retention_days: 30, version: 2 });
    const stale = { code: 'version_conflict', data: { version: 2 } };
    await expect(store.projects.change(id, { description: 'late' }, 1)).rejects.toMatchObject(stale);
    await expect(store.projects.delete(id, 1)).rejects.toMatchObject(stale);
    expect(await store.projects.change(id, {}, 2)).toEqual(changed);
    await store.projects.delete(id, 2);
    expect(await store.projects.get(id)).toBe(undefined);
  });

  it('is deleted with everything in it', async () => {
    const { id } = await newProject();
    await store.servers.create(id, [stdio], false);
    await store.secrets.put(id, 'ZONE', 'UTC');
    await store.projects.setSwitch(id, 'time', 'now', false);
    await store.products.install(id, { name: 'p', version: '1', manifest: {}, servers: named('other') }, []);
    await store.projects.delete(id, undefined);
    await using client = await connectTo(database.name);
    for (const table of ['project_mcp_servers', 'secrets', 'switches', 'products']) {
      const { rows } = await client.query(`SELECT 1 FROM kb.${table} WHERE project_id = $1`, [id]);
      expect(rows).toEqual([]);
    }
  });

  it('named default cannot be deleted, even with plain SQL', async () => {
    const id = await defaultProjectOf(store);
    const kept = { code: 'read_only' };
    await expect(store.projects.delete(id, undefined)).rejects.toMatchObject(kept);
    await expect(store.projects.change(id, { name: 'another' }, undefined)).rejects.toMatchObject(kept);
    await using client = await connectTo(database.name);
    await expect(client.query('DELETE FROM kb.projects')).rejects.toThrow('cannot be deleted or renamed');
    await expect(client.query("UPDATE kb.projects SET name = 'x'")).rejects.toThrow('cannot be deleted');
    expect(
      await store.projects.change(id, { name: 'default', description: 'changed' }, undefined),
    ).toMatchObject({
      description: 'changed',
    });
  });

  it.each([randomUUID(), 'no uuid', ''])('that does not exist is an error: %j', async (id) => {
    const unknown = { code: 'unknown_project' };
    expect(await store.projects.get(id)).toBe(undefined);
    await expect(store.projects.change(id, {}, undefined)).rejects.toMatchObject(unknown);
    await expect(store.projects.delete(id, undefined)).rejects.toMatchObject(unknown);
    await expect(store.servers.create(id, [stdio], false)).rejects.toMatchObject(unknown);
    await expect(store.projects.setSwitch(id, 'time', null, false)).rejects.toMatchObject(unknown);
    await expect(store.secrets.put(id, 'NAME', 'value')).rejects.toMatchObject(unknown);
  });
});

describe('servers of a project', () => {
  it('have the given values', async () => {
    const { id } = await newProject();
    const [row] = await store.servers.create(id, [stdio], false);
    expect(row).toMatchObject({ ...stdio, project_id: id, product_id: null, version: 1 });
    expect((await store.projects.get(id))!.servers).toEqual([row]);
  });

  it('are created all or none', async () => {
    const { id, name } = await newProject();
    await store.servers.create(id, named('one', 'two'), false);
    await expect(store.servers.create(id, named('zero', 'one', 'two'), false)).rejects.toMatchObject({
      code: 'conflict',
      message: `There are servers "one", "two" in project "${name}" already.`,
      data: { names: ['one', 'two'] },
    });
    expect(await namesIn(id)).toEqual(['one', 'two']);
    await expect(store.servers.create(id, named('same', 'same'), false)).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });

  it('are replaced on request, except those of a product', async () => {
    const { id } = await newProject();
    const [before] = await store.servers.create(id, named('one'), false);
    const [after] = await store.servers.create(id, [{ ...stdio, name: 'one', description: 'new' }], true);
    expect(after).toMatchObject({ id: before!.id, description: 'new', version: 2 });
    await store.products.install(id, { name: 'p', version: '1', manifest: {}, servers: named('bought') }, []);
    await expect(store.servers.create(id, named('one', 'bought'), true)).rejects.toMatchObject({
      data: { names: ['bought'] },
    });
  });

  it('change only in the expected version', async () => {
    const { id, name } = await newProject();
    await store.servers.create(id, named('one', 'two'), false);
    expect(await store.servers.change(id, 'one', { enabled: false }, 1)).toMatchObject({
      enabled: false,
      version: 2,
    });
    await expect(store.servers.change(id, 'one', { enabled: true }, 1)).rejects.toMatchObject({
      code: 'version_conflict',
      message: `The server "one" in project "${name}" was changed in the meantime: it has version 2, not 1.`,
      data: { version: 2 },
    });
    await expect(store.servers.delete(id, 'one', 1)).rejects.toMatchObject({ code: 'version_conflict' });
    await expect(store.servers.change(id, 'one', { name: 'two' }, undefined)).rejects.toMatchObject({
      code: 'conflict',
      data: { names: ['two'] },
    });
    await expect(store.servers.change(id, 'three', {}, undefined)).rejects.toMatchObject({
      code: 'not_found',
      message: `There is no server "three" in project "${name}".`,
    });
    await store.servers.delete(id, 'one', 2);
    await expect(store.servers.delete(id, 'one', undefined)).rejects.toMatchObject({ code: 'not_found' });
    expect(await namesIn(id)).toEqual(['two']);
  });

  it('let only one of several concurrent changes win', async () => {
    const { id } = await newProject();
    await store.servers.create(id, [stdio], false);
    const changes = await Promise.allSettled(
      Array.from({ length: 8 }, (_, index) =>
        store.servers.change(id, 'time', { description: `change ${index}` }, 1),
      ),
    );
    expect(changes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('reject characters that the database cannot store', async () => {
    const { id } = await newProject();
    for (const text of ['NUL \0', 'half \ud800']) {
      const bad = { code: 'invalid_input' };
      const config = { command: text };
      await expect(store.servers.create(id, [{ ...stdio, config }], false)).rejects.toMatchObject(bad);
    }
    await expect(store.projects.create({ name: 'NUL \0' })).rejects.toMatchObject({ code: 'invalid_input' });
  });

  it('get a new date and version when plain SQL changes them', async () => {
    const { id } = await newProject();
    const [row] = await store.servers.create(id, [stdio], false);
    await using client = await connectTo(database.name);
    await client.query('UPDATE kb.project_mcp_servers SET enabled = false WHERE id = $1', [row!.id]);
    await client.query('UPDATE kb.project_mcp_servers SET enabled = false WHERE id = $1', [row!.id]);
    const [after] = (await store.projects.get(id))!.servers;
    expect(after!.version).toBe(2);
    expect(after!.updated_at > row!.updated_at).toBe(true);
  });
});

describe('a product', () => {
  const product = (version: string, servers: NewServer[]) => ({
    ...{ name: 'weather', version, servers },
    manifest: { name: 'weather', version, mcp: { servers: [] } },
  });

  it('adds servers, and an upgrade changes only what differs', async () => {
    const { id } = await newProject();
    const first = await store.products.install(id, product('1', named('a', 'b', 'c')), []);
    expect(first).toMatchObject({
      isNew: true,
      added: ['a', 'b', 'c'],
      changed: [],
      removed: [],
      unchanged: [],
    });
    await store.servers.change(id, 'b', { enabled: false }, undefined);
    const [, , c] = (await store.projects.get(id))!.servers;
    const next = [{ ...stdio, name: 'b', description: 'new' }, ...named('c', 'd')];
    const second = await store.products.install(id, product('2', next), []);
    expect(second).toMatchObject({
      product: { id: first.product.id, version: '2' },
      ...{ isNew: false, added: ['d'], changed: ['b'], removed: ['a'], unchanged: ['c'] },
    });
    const { servers, products } = (await store.projects.get(id))!;
    expect(servers.find(({ name }) => name === 'b')).toMatchObject({ description: 'new', enabled: false });
    expect(servers.find(({ name }) => name === 'c')).toEqual(c);
    expect(servers.every(({ product_id }) => product_id === first.product.id)).toBe(true);
    expect(products).toEqual([{ id: first.product.id, name: 'weather', version: '2' }]);
  });

  it('with a name conflict changes nothing', async () => {
    const { id } = await newProject();
    await store.servers.create(id, named('a'), false);
    await expect(store.products.install(id, product('1', named('a', 'b', 'c')), ['c'])).rejects.toMatchObject(
      {
        code: 'conflict',
        data: { names: ['a', 'c'] },
      },
    );
    expect(await store.products.list(id)).toEqual([]);
    expect(await namesIn(id)).toEqual(['a']);
  });

  it('removes only its own servers', async () => {
    const { id, name } = await newProject();
    await store.servers.create(id, named('mine'), false);
    await store.products.install(id, product('1', named('a', 'b')), []);
    expect(await store.products.remove(id, 'weather')).toEqual(['a', 'b']);
    expect(await namesIn(id)).toEqual(['mine']);
    await expect(store.products.remove(id, 'weather')).rejects.toMatchObject({
      code: 'not_found',
      message: `There is no product "weather" in project "${name}".`,
    });
  });
});
