import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { connectTo } from '../../test/helpers/database.ts';
import { storeForTests } from '../../test/helpers/store.ts';
import { newWorkspace } from '../../test/helpers/workspaces.ts';
import type { NewServer } from './servers.ts';
import type { WorkspaceRow } from './workspaces.ts';

const { database, store, newProject } = await storeForTests();
const hostedIn = async (id: string) => (await store.projects.get(id))!.hosted;

function server(name: string, group?: string): NewServer {
  const settings = group === undefined ? {} : { group };
  return { name, description: '', transport: 'stdio', config: { command: 'x' }, settings, enabled: true };
}

describe('a hosted server', () => {
  it('is stored unchanged, and read with its project', async () => {
    const id = await newProject();
    const input = newWorkspace('time');
    const row = await store.hosted.create(id, input);
    expect(row).toMatchObject({
      ...input,
      project_id: id,
      container_type: 'mcp_server',
      lifecycle: 'persistent',
      status: 'starting',
      provider: null,
      provider_workspace_id: null,
      metadata: {},
      version: 1,
    });
    const asked = { ...input.mcp_config, provider: 'docker' as const };
    const off = newWorkspace('off', { enabled: false, mcp_config: asked });
    const second = await store.hosted.create(id, off);
    expect(second).toMatchObject({ status: 'stopped', provider: 'docker' });
    expect(await hostedIn(id)).toEqual([row, second]);
    expect((await store.projects.all()).find(({ project }) => project.id === id)!.hosted).toEqual([
      row,
      second,
    ]);
    await store.projects.delete(id, undefined);
    await using client = await connectTo(database.name);
    const left = await client.query('SELECT id FROM kb.agent_workspaces WHERE project_id = $1', [id]);
    expect(left.rows).toEqual([]);
  });

  it('changes only in the given fields, and gets a new version', async () => {
    const id = await newProject();
    const row = await store.hosted.create(id, newWorkspace('time'));
    const off = await store.hosted.change(row.id, { enabled: false }, 1);
    expect(off).toMatchObject({ enabled: false, version: 2, mcp_config: row.mcp_config });
    const mcp_config = { ...row.mcp_config, environment: { LEVEL: 'debug' } };
    const resource_limits = { ...row.resource_limits, memory: '1G' };
    const changed = await store.hosted.change(row.id, { mcp_config, resource_limits }, undefined);
    expect(changed).toMatchObject({ mcp_config, resource_limits, version: 3 });
    expect(changed.updated_at.getTime()).toBeGreaterThan(row.updated_at.getTime());
    expect(await store.hosted.change(row.id, { mcp_config }, 3)).toEqual(changed);
    expect(await store.hosted.change(row.id, {}, 3)).toEqual(changed);
    await expect(store.hosted.change(row.id, { enabled: true }, 2)).rejects.toMatchObject({
      code: 'version_conflict',
      message: 'The hosted server "time" was changed in the meantime: it has version 3, not 2.',
      data: { version: 3 },
    });
    await expect(store.hosted.delete(row.id, 2)).rejects.toMatchObject({ code: 'version_conflict' });
    await store.hosted.delete(row.id, 3);
    expect(await hostedIn(id)).toEqual([]);
  });

  it('that does not exist cannot be changed', async () => {
    for (const id of [randomUUID(), 'time']) {
      const missing = { code: 'not_found', message: `There is no hosted server with the id "${id}".` };
      await expect(store.hosted.change(id, { enabled: false }, undefined)).rejects.toMatchObject(missing);
      await expect(store.hosted.delete(id, undefined)).rejects.toMatchObject(missing);
    }
    await expect(store.hosted.create(randomUUID(), newWorkspace('x'))).rejects.toMatchObject({
      code: 'unknown_project',
    });
  });

  it('gets a new status without a new version', async () => {
    const id = await newProject();
    const row = await store.hosted.create(id, newWorkspace('time'));
    const note: Partial<WorkspaceRow> = {
      status: 'ready',
      provider: 'gvisor',
      provider_workspace_id: 'c0ffee',
      metadata: { memory: { restarts: 1 } },
    };
    await store.hosted.setStatus(row.id, note);
    expect(await hostedIn(id)).toEqual([{ ...row, ...note }]);
    await store.hosted.setStatus(row.id, { status: 'waiting', provider_workspace_id: null });
    expect(await hostedIn(id)).toEqual([{ ...row, ...note, status: 'waiting', provider_workspace_id: null }]);
    const strange = { status: 'ready', enabled: false, name: 'other' } as const;
    await store.hosted.setStatus(row.id, strange);
    expect(await hostedIn(id)).toMatchObject([{ name: 'time', enabled: true, version: 1 }]);
    await store.hosted.setStatus(randomUUID(), { status: 'ready' });
  });

  it('notifies subscribers when it or its status changes, and not otherwise', async () => {
    const heard: (string | undefined)[] = [];
    const stop = store.subscribe((projectId) => heard.push(projectId));
    const id = await newProject();
    // Drains earlier notifications.
    await expect.poll(() => heard.at(-1)).toBe(id);
    heard.length = 0;
    const row = await store.hosted.create(id, newWorkspace('time'));
    await store.hosted.setStatus(row.id, { status: 'ready', metadata: { a: 1, b: [2] } });
    await store.hosted.setStatus(row.id, { status: 'ready', metadata: { b: [2], a: 1 } });
    await store.hosted.setStatus(row.id, {});
    await store.hosted.change(row.id, { enabled: true }, undefined);
    await store.hosted.delete(row.id, undefined);
    const last = await newProject();
    await expect.poll(() => heard.at(-1)).toBe(last);
    stop();
    expect(heard).toEqual([id, id, id, last]);
  });
});

describe('the name of a hosted server', () => {
  const taken = (...names: string[]) => ({ code: 'conflict', data: { names } });

  it('is not that of another hosted server', async () => {
    const [id, other] = [await newProject(), await newProject()];
    await store.hosted.create(id, newWorkspace('time'));
    await expect(store.hosted.create(id, newWorkspace('time'))).rejects.toMatchObject(taken('time'));
    await store.hosted.create(other, newWorkspace('time'));
  });

  it('is not that of an added server, whichever came first', async () => {
    const id = await newProject();
    await store.servers.create(id, [server('first')], false);
    await expect(store.hosted.create(id, newWorkspace('first'))).rejects.toMatchObject(taken('first'));
    await store.hosted.create(id, newWorkspace('second'));
    for (const replace of [false, true]) {
      await expect(store.servers.create(id, [server('second')], replace)).rejects.toMatchObject(
        taken('second'),
      );
    }
    await expect(store.servers.change(id, 'first', { name: 'second' }, undefined)).rejects.toMatchObject(
      taken('second'),
    );
    const both = [server('first'), server('second')];
    await expect(store.servers.create(id, both, false)).rejects.toMatchObject(taken('first', 'second'));
    expect((await store.projects.get(id))!.servers.map(({ name }) => name)).toEqual(['first']);
  });

  it('is not that of a server of a product', async () => {
    const id = await newProject();
    const install = (...servers: NewServer[]) =>
      store.products.install(id, { name: 'p', version: '1', manifest: {}, servers }, []);
    await install(server('crm'));
    await expect(store.hosted.create(id, newWorkspace('crm'))).rejects.toMatchObject(taken('crm'));
    await store.hosted.create(id, newWorkspace('time'));
    await expect(install(server('crm'), server('time'))).rejects.toMatchObject(taken('time'));
  });

  it('is not that of a group', async () => {
    const id = await newProject();
    await store.servers.create(id, [server('a', 'both')], false);
    const clash = {
      code: 'conflict',
      message: expect.stringContaining('The server "a" cannot have this group: '),
    };
    await expect(store.hosted.create(id, newWorkspace('both'))).rejects.toMatchObject(clash);
    expect(await hostedIn(id)).toEqual([]);
    await store.hosted.create(id, newWorkspace('time'));
    await expect(store.servers.create(id, [server('b', 'time')], false)).rejects.toMatchObject(
      taken('b', 'time'),
    );
  });

  it('is taken by one of two concurrent requests', async () => {
    const id = await newProject();
    const outcomes = await Promise.allSettled([
      store.hosted.create(id, newWorkspace('x')),
      store.servers.create(id, [server('x')], false),
      store.hosted.create(id, newWorkspace('x')),
    ]);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(taken('x'));
    }
  });
});
