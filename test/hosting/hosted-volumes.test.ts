import { describe, expect, it } from 'vitest';
import { sharedHostingSite } from './hosting-site.ts';

describe.concurrent('the volume of a server', () => {
  const open = sharedHostingSite();

  it('[H19, H20] keeps its data after a restart, a crash and a stop', async ({ skip }) => {
    const site = await open({ skip });
    const server = await site.host({ image: await site.image('logs-lifecycle'), volumes: ['/data'] });
    const { id } = server;
    expect(await site.inspect(server)).toMatchObject({
      Mounts: [{ Type: 'volume', Destination: '/data', RW: true }],
      HostConfig: { Binds: null, ReadonlyRootfs: true },
    });
    await site.tool(id, 'note', { text: 'first' });
    await site.site.done(`POST /mcp/servers/${id}/restart`);
    await site.tool(id, 'note', { text: 'after a restart' });
    await site.call(id, 'tools/call', { name: 'crash' });
    await site.reaches(id, ({ status, restart_count }) => status === 'ready' && restart_count === 1);
    await site.tool(id, 'note', { text: 'after a crash' });
    await site.site.done(`POST /mcp/servers/${id}/stop`);
    await site.reaches(id, ({ status }) => status === 'stopped');
    await site.site.done(`POST /mcp/servers/${id}/start`);
    await site.reaches(id, ({ status }) => status === 'ready');
    expect((await site.tool(id, 'notes')).trim().split('\n')).toEqual([
      ...['began', 'first', 'was told to end'],
      ...['began', 'after a restart'],
      ...['began', 'after a crash', 'was told to end'],
      'began',
    ]);
  });

  it('[H19] outlives its server, serves the next one of that name, and is removed only on request', async ({
    skip,
  }) => {
    const site = await open({ skip });
    const input = { name: 'comes-and-goes', image: await site.image('logs-lifecycle'), volumes: ['/data'] };
    const volumesOf = async () => {
      const filters = JSON.stringify({ label: ['dev.switchboard.name=comes-and-goes'] });
      type Found = { Volumes: { Name: string }[] | null };
      const { Volumes } = await site.docker<Found>('GET', '/volumes', { filters });
      return Volumes ?? [];
    };
    const first = await site.host(input);
    await site.tool(first.id, 'note', { text: 'of the first' });
    expect(await site.remove(first.id)).toMatchObject({ status: 204 });
    await site.withoutContainer(first.id);
    expect(await volumesOf()).toHaveLength(1);

    const second = await site.host(input);
    expect(second.id).not.toBe(first.id);
    expect(await site.tool(second.id, 'notes')).toBe('began\nof the first\nwas told to end\nbegan\n');
    expect(await site.remove(second.id, '?volumes=delete')).toMatchObject({ status: 204 });
    await site.withoutContainer(second.id);
    expect(await volumesOf()).toEqual([]);

    const third = await site.host(input);
    expect(await site.tool(third.id, 'notes')).toBe('began\n');
    expect(await site.remove(third.id, '?volumes=delete')).toMatchObject({ status: 204 });
  });

  it('[H19] is private: another server with the same path does not see its data', async ({ skip }) => {
    const site = await open({ skip });
    const image = await site.image('inspects-sandbox');
    const [one, other] = await Promise.all([
      site.host({ image, volumes: ['/data', '/kept/deep'] }),
      site.host({ image, volumes: ['/data'] }),
    ]);
    for (const path of ['/data/mine', '/kept/deep/mine']) {
      expect(await site.tool(one.id, 'write', { path, text: 'of one' })).toBe('"done"');
    }
    expect(await site.tool(other.id, 'list', { path: '/data' })).toBe('[]');
    expect(await site.tool(one.id, 'list', { path: '/data' })).toBe('["mine"]');
    expect(await site.tool(one.id, 'read', { path: '/kept/deep/mine' })).toBe('"of one"');
  });
});
