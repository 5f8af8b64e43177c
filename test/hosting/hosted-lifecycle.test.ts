import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { groupRuns } from '../../src/channels/process-table.ts';
import { sharedEngine } from '../helpers/docker.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { HostingSite, isReady, sharedHostingSite, sharedProcessSite } from './hosting-site.ts';

describe.concurrent('when Switchboard starts', () => {
  it('[H8] all registered servers start at the same time', async () => {
    await using site = await HostingSite.start();
    const { witness } = site.site;
    const names = ['one', 'two', 'three'];
    for (const name of names)
      await site.register({ name, ...site.process('delays-handshake', witness.env(name)) });
    await site.register({
      name: 'off',
      enabled: false,
      ...site.process('delays-handshake', witness.env('off')),
    });
    await Promise.all(names.map((name) => witness.sees(name, 'initialize')));
    await site.site.restart();
    // No server may continue before all of them wait.
    await Promise.all(names.map((name) => witness.severalOf(name, 'initialize', 2)));
    for (const name of names) witness.tell(name, 'answer');
    const servers = await site.list();
    for (const name of names) {
      const { id } = servers.find((server) => server.name === name)!;
      expect(await site.tool(id, 'late_tool')).toBe('better late than never');
      expect(await site.reaches(id, isReady)).toMatchObject({ restart_count: 0, health: 'ok' });
    }
    expect(servers.find(({ name }) => name === 'off')).toMatchObject({ status: 'stopped' });
    expect(witness.seenBy('off', 'start')).toEqual([]);
  });

  it('[H8] instances that survived a kill -9 are adopted, and none runs twice', async ({ skip }) => {
    await using site = await HostingSite.start({ engine: await sharedEngine({ skip }) });
    const { witness } = site.site;
    const image = await site.image('logs-lifecycle');
    const [first, second, local] = await Promise.all([
      site.host({ name: 'first', image, volumes: ['/data'] }),
      site.host({ name: 'second', image, volumes: ['/data'] }),
      site.host({ name: 'local', ...site.process('toolbox', witness.env('local')) }),
    ]);
    await site.tool(first.id, 'note', { text: 'before' });
    const pid = Number(await site.tool(local.id, 'pid'));

    await site.killAndStart();
    for (const { id, provider_workspace_id } of [first, second]) {
      expect(await site.reaches(id, isReady)).toMatchObject({ provider_workspace_id, restart_count: 0 });
      expect(await site.containers(id)).toEqual([provider_workspace_id]);
    }
    await site.tool(first.id, 'note', { text: 'after' });
    expect(await site.tool(first.id, 'notes')).toBe('began\nbefore\nafter\n');

    await site.reaches(local.id, isReady);
    expect(Number(await site.tool(local.id, 'pid'))).not.toBe(pid);
    expect(groupRuns(pid)).toBe(false);
    expect(await witness.severalOf('local', 'start', 2)).toHaveLength(2);
  });
});

describe.concurrent('a server that exits unexpectedly', () => {
  const open = sharedHostingSite();
  const openLocal = sharedProcessSite();

  it('[H9] restarts within 5 seconds, and its crash is logged with code and stderr', async ({ skip }) => {
    const site = await open({ skip });
    const before = await site.host({
      name: 'crashes',
      image: await site.image('logs-lifecycle'),
      volumes: ['/data'],
    });
    const { id } = before;
    expect(before).toMatchObject({ restart_count: 0, last_crash: null });
    const answer = await site.call(id, 'tools/call', { name: 'crash' });
    expect(answer).toMatchObject({
      status: 503,
      body: {
        error: {
          code: 'server_unavailable',
          message: expect.stringMatching(/exited with code 70.*FATAL: out of luck/s),
        },
      },
    });
    const after = await site.reaches(
      id,
      ({ status, restart_count }) => status === 'ready' && restart_count === 1,
    );
    expect(after.provider_workspace_id).not.toBe(before.provider_workspace_id);
    expect(await site.containers(id)).toEqual([after.provider_workspace_id]);
    expect(after).toMatchObject({ last_crash: { exit_code: 70, signal: null }, health: 'ok', error: null });

    const log = await site.log(id);
    expect(log).toContain('FATAL: out of luck');
    expect(log).toMatch(/exited with code 70. It restarts now/);
    expect(await site.site.warning(/"crashes" exited with code 70/)).toContain('FATAL: out of luck');
    // The bridge works again too.
    expect(await site.tool(id, 'notes')).toBe('began\nbegan\n');
  });

  it('[H10, H12] is restarted after growing delays, until a restart on request', async ({
    onTestFinished,
  }) => {
    const site = await openLocal();
    const folder = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const { command, args } = fixtureServer('toolbox');
    const script = 'test -e "$0" && exec "$@"; echo "FATAL: no luck" >&2; exit 3';
    const { id } = await site.register({
      name: 'loops',
      provider: 'process',
      command: 'sh',
      args: ['-c', script, join(folder, 'luck'), command, ...args],
    });
    const loops = await site.reaches(id, ({ status }) => status === 'backing_off');
    expect(loops).toMatchObject({
      container_status: 'restarting',
      health: 'warning',
      restart_count: 3,
      error: expect.stringContaining('crash loop'),
      last_crash: { exit_code: 3, signal: null },
    });
    // The first delay.
    expect(Math.round((Date.parse(loops.next_try!) - Date.parse(loops.last_crash!.at)) / 100)).toBe(50);
    const row = await site.rowReaches(id, ({ status }) => status === 'backing_off');
    expect(row.metadata.memory).toMatchObject({ restarts: 3, step: 1 });
    expect(row.metadata.memory.crashes).toHaveLength(4);
    const warning = await site.site.warning(/"loops" exited with code 3. It is in a crash loop/);
    expect(warning).toMatch(/It restarts in 5 s. Last output: FATAL: no luck/);
    expect(
      site.site.switchboard.events.filter(({ message }) => /"loops" exited/.test(String(message))),
    ).toHaveLength(4);
    // Calls meanwhile fail at once.
    expect(await site.call(id, 'tools/list')).toMatchObject({
      status: 503,
      body: { error: { code: 'server_unavailable', details: { server: 'loops', exitCode: 3 } } },
    });

    // The second delay.
    const again = await site.reaches(
      id,
      ({ restart_count, status }) => restart_count === 4 && status === 'backing_off',
    );
    expect(Math.round((Date.parse(again.next_try!) - Date.parse(again.last_crash!.at)) / 100)).toBe(150);

    await writeFile(join(folder, 'luck'), '');
    const restarted = await site.site.ask(`POST /mcp/servers/${id}/restart`);
    expect(restarted).toMatchObject({
      status: 200,
      body: { status: 'ready', restart_count: 0, health: 'ok' },
    });
    expect(await site.tool(id, 'echo', { text: 'lucky' })).toBe('lucky');
    const { metadata } = await site.rowReaches(id, ({ status }) => status === 'ready');
    expect(metadata.memory).toMatchObject({ restarts: 0, step: 0, crashes: [] });
  });

  it.for([
    { policy: 'on-failure', code: 0, status: 'stopped', health: 'ok' },
    { policy: 'never', code: 3, status: 'failed', health: 'warning' },
  ])(
    'stays $status with the policy $policy after exit code $code',
    async ({ policy, code, status, health }) => {
      const site = await openLocal();
      const { id } = await site.register({
        ...{ provider: 'process', restart_policy: policy, command: 'sh', args: ['-c', `exit ${code}`] },
      });
      const server = await site.reaches(id, (candidate) => candidate.status === status);
      expect(server).toMatchObject({ container_status: 'stopped', restart_count: 0, health, next_try: null });
      expect(await site.call(id, 'tools/list')).toMatchObject({
        status: 503,
        body: { error: { message: expect.stringContaining(`exited with code ${code}`) } },
      });
    },
  );
});

describe.concurrent('a server that is updated', () => {
  const open = sharedHostingSite();

  it('keeps the old instance running if the new image does not exist, and says so', async ({ skip }) => {
    const site = await open({ skip });
    const image = await site.image('logs-lifecycle');
    const { id, name, provider_workspace_id } = await site.host({ image, volumes: ['/data'] });
    const volumes = (await site.view(id)).volume_names;
    expect(volumes).toEqual([expect.stringMatching(/^switchboard-/)]);
    expect(await site.volumes()).toEqual(expect.arrayContaining(volumes!));
    const missing = '127.0.0.1:1/nobody/nothing:2';
    await site.site.done(`PATCH /mcp/servers/${id}`, { image: missing });
    const kept = await site.reaches(id, ({ error }) => error?.includes('keeps running') ?? false);
    expect(kept).toMatchObject({
      ...{ status: 'ready', health: 'warning', image: missing, provider_workspace_id, last_crash: null },
      error: expect.stringContaining(`The image "${missing}" is not on this machine`),
      next_try: expect.any(String),
    });
    expect(await site.tool(id, 'notes')).toBe('began\n');
    expect((await site.site.ask(`POST /mcp/servers/${id}/restart`)).status).toBe(502);
    expect(await site.tool(id, 'notes')).toBe('began\n');
    await site.site.done(`PATCH /mcp/servers/${id}`, { image });
    const back = await site.reaches(id, ({ status, error }) => status === 'ready' && error === null);
    expect(back).toMatchObject({ provider_workspace_id, health: 'ok' });
    // Its volumes can still be removed by its name.
    expect((await site.remove(id)).status).toBe(204);
    await site.withoutContainer(id);
    expect((await site.remove(name, '?volumes=delete')).status).toBe(204);
    for (const volume of volumes!) expect(await site.volumes()).not.toContain(volume);
    expect((await site.remove(name, '?volumes=delete')).status).toBe(404);
  });
});

describe.concurrent('a server that is restarted on request', () => {
  const open = sharedHostingSite();

  it('[H12] gets SIGTERM, then runs in a new container with its counters reset', async ({ skip }) => {
    const site = await open({ skip });
    const { id } = await site.host({ image: await site.image('logs-lifecycle'), volumes: ['/data'] });
    await site.call(id, 'tools/call', { name: 'crash' });
    const before = await site.reaches(
      id,
      ({ status, restart_count }) => status === 'ready' && restart_count === 1,
    );
    expect(await site.tool(id, 'notes')).toBe('began\nbegan\n');
    const { status, body: after } = await site.site.ask(`POST /mcp/servers/${id}/restart`);
    expect(status).toBe(200);
    expect(after).toMatchObject({
      ...{ id, status: 'ready', container_status: 'running', restart_count: 0 },
      image: before.image,
      resource_limits: before.resource_limits,
      provider_workspace_id: expect.not.stringMatching(before.provider_workspace_id!),
    });
    expect(await site.containers(id)).toEqual([after.provider_workspace_id]);
    expect(await site.tool(id, 'notes')).toBe('began\nbegan\nwas told to end\nbegan\n');
  });
});

describe.concurrent('when Switchboard stops', () => {
  it('[H11] all containers get SIGTERM, and nothing is left behind', async ({ skip }) => {
    await using site = await HostingSite.start({ engine: await sharedEngine({ skip }) });
    const image = await site.image('logs-lifecycle');
    const servers = await Promise.all([
      site.host({ name: 'first', image, volumes: ['/data'] }),
      site.host({ name: 'second', image, volumes: ['/data'] }),
    ]);
    for (const { id } of servers) expect(await site.tool(id, 'notes')).toBe('began\n');
    await site.site.restart(async () => {
      expect(site.site.switchboard.process.exitCode).toBe(0);
      expect(await site.containers()).toEqual([]);
      for (const { id } of servers) {
        expect(await site.row(id)).toMatchObject({ status: 'stopped', provider_workspace_id: null });
      }
    });
    for (const { id } of servers) {
      expect(await site.reaches(id, isReady)).toMatchObject({ restart_count: 0, last_crash: null });
      expect(await site.tool(id, 'notes')).toBe('began\nwas told to end\nbegan\n');
    }
  });
});
