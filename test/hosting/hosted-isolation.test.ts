import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { HostedView } from '../../src/api/hosted-views.ts';
import { patienceMs } from '../helpers/patience.ts';
import { type HostingSite, sharedHostingSite } from './hosting-site.ts';

describe.concurrent('a server in its sandbox', () => {
  const open = sharedHostingSite();

  it('[H18] sees nothing of its host, its neighbours or a network', async ({ skip }) => {
    const site = await open({ skip });
    const image = await site.image('inspects-sandbox');
    const [server, neighbour] = await Promise.all([
      site.host({ image, environment: { OWN: 'of this one' } }),
      site.host({ image, environment: { OTHER: 'secret of the neighbour' } }),
    ]);
    const ask = async (tool: string, given: object = {}) =>
      JSON.parse(await site.tool(server.id, tool, given)) as unknown;

    const environment = (await ask('environment')) as Record<string, string>;
    expect(environment.OWN).toBe('of this one');
    expect(Object.keys(environment)).not.toContain('DATABASE_URL');
    expect(Object.keys(environment)).not.toContain('OTHER');
    const processes = JSON.stringify(await ask('processes'));
    expect(processes).toContain('inspects-sandbox.mjs');
    expect(processes).not.toContain('secret of the neighbour');
    expect(processes).not.toContain('switchboard');
    expect(JSON.parse(await site.tool(neighbour.id, 'environment'))).toMatchObject({
      OTHER: 'secret of the neighbour',
    });

    expect(await ask('list', { path: tmpdir() })).toEqual([]);
    expect(await ask('list', { path: '/work' })).toBe('ENOENT');
    expect(await ask('list', { path: import.meta.dirname })).toBe('ENOENT');
    expect(await ask('read', { path: '/etc/hostname' })).not.toBe('ENOENT');
    expect(await ask('write', { path: '/srv/new', text: 'x' })).toBe('EROFS');
    expect(await ask('write', { path: '/etc/passwd', text: 'x' })).toBe('EROFS');
    expect(await ask('write', { path: '/tmp/new', text: 'x' })).toBe('done');
    expect(await ask('list', { path: '/tmp' })).toEqual(['new']);

    const status = String(await ask('read', { path: '/proc/self/status' }));
    expect(status).toMatch(/CapEff:\s*0+\n/);
    expect(Object.keys((await ask('interfaces')) as object).filter((name) => name !== 'lo')).toEqual([]);
    const { hostname, port } = new URL(site.site.baseUrl);
    expect(await ask('connect', { host: hostname, port })).not.toBe('connected');
    expect(await ask('connect', { host: '198.18.0.1', port: 53 })).not.toBe('connected');
  });

  it('[H16] gets half a core by default, and [H17] its configured share', async ({ skip }) => {
    const site = await open({ skip });
    const image = await site.image('exhausts-resources');
    const [usual, custom] = await Promise.all([
      site.host({ image }),
      site.host({ image, resource_limits: { cpu: '0.2', memory: '1G' } }),
    ]);
    await Promise.all([usual, custom].map(({ id }) => site.tool(id, 'cores', { count: 2 })));
    const [usualShare, customShare] = await Promise.all([coresOf(site, usual), coresOf(site, custom)]);
    // Two threads would use two cores, or all that are idle.
    expect(usualShare).toBeLessThan(0.65);
    expect(customShare).toBeLessThan(0.3);
    expect(await site.inspect(custom)).toMatchObject({
      HostConfig: { NanoCpus: 200_000_000, Memory: 2 ** 30 },
    });
  });

  it.for([
    { id: 'H16', limits: {}, most: 512, beyond: 700 },
    { id: 'H17', limits: { memory: '128M' }, most: 128, beyond: 300 },
  ])('[$id] is killed at $most MB of memory, and restarts', async ({ limits, most, beyond }, { skip }) => {
    const site = await open({ skip });
    const { id } = await site.host({
      image: await site.image('exhausts-resources'),
      resource_limits: limits,
    });
    const answer = await site.call(id, 'tools/call', { name: 'memory', arguments: { megabytes: beyond } });
    expect(answer).toMatchObject({
      status: 503,
      body: {
        error: { code: 'server_unavailable', message: expect.stringContaining(`${most} MB of memory`) },
      },
    });
    const server = await site.reaches(
      id,
      ({ status, restart_count }) => status === 'ready' && restart_count === 1,
    );
    expect(server.last_crash).toMatchObject({
      signal: 'SIGKILL',
      // The engine does not always notice which process the kernel killed.
      reason: expect.stringMatching(`^(perhaps it )?used more than its ${most} MB of memory$`),
    });
    const held = amountsIn(await site.log(id), /has (\d+) MB of memory/g);
    expect(Math.max(...held)).toBeGreaterThan(most / 4);
    expect(Math.max(...held)).toBeLessThanOrEqual(most);
  });

  it.for([
    { id: 'H16', limits: {}, most: 1_024 },
    { id: 'H17', limits: { disk: '32M' }, most: 32 },
  ])(
    '[$id] cannot write more than $most MB to its disk, and keeps running',
    async ({ limits, most }, { skip }) => {
      const site = await open({ skip });
      const { id } = await site.host({
        image: await site.image('exhausts-resources'),
        volumes: ['/data'],
        resource_limits: { cpu: '1', ...limits },
      });
      const fill = (megabytes: number) =>
        site.call(
          id,
          'tools/call',
          { name: 'disk', arguments: { path: '/data/hog', megabytes } },
          patienceMs,
        );
      expect(await fill(most / 2)).toMatchObject({ status: 200 });
      const { status, body } = await fill(most);
      expect({ status, message: body.error?.message }).toEqual({
        status: 502,
        message: expect.stringContaining('ENOSPC'),
      });
      const written = most / 2 + amountsIn(await site.log(id), /wrote (\d+) MB/g).at(-1)!;
      expect(written).toBeGreaterThan(0.7 * most);
      expect(written).toBeLessThanOrEqual(most);
      expect(await site.tool(id, 'echo', { text: 'still here' })).toContain('still here');
      expect(await site.view(id)).toMatchObject({ status: 'ready', restart_count: 0, last_crash: null });
    },
  );

  it.for([
    { id: 'H16', limits: {}, pids: 128 },
    { id: 'H17', limits: { pids: 32 }, pids: 32 },
  ])('[$id] cannot have more than $pids processes and threads', async ({ limits, pids }, { skip }) => {
    const site = await open({ skip });
    const { id } = await site.host({
      image: await site.image('exhausts-resources'),
      resource_limits: { cpu: '1', memory: '1G', ...limits },
    });
    const answer = await site.call(
      id,
      'tools/call',
      { name: 'processes', arguments: { count: 2 * pids } },
      60_000,
    );
    expect(answer.status).not.toBe(200);
    const log = await site.log(id);
    expect(log).toMatch(/cannot have \d+ processes: spawn \S+ EAGAIN/);
    const made = amountsIn(log, /has (\d+) processes/g);
    expect(made.length).toBeGreaterThan(0);
    expect(Math.max(...made)).toBeLessThan(pids);
    // The sandbox and its server keep running.
    expect(await site.tool(id, 'echo', { text: 'still here' })).toContain('still here');
    expect(await site.view(id)).toMatchObject({ status: 'ready', restart_count: 0, last_crash: null });
  });
});

interface Stats {
  read: string;
  cpu_stats: { cpu_usage: { total_usage: number }; throttling_data: { throttled_periods: number } };
}

/** The average number of cores used over two seconds, or longer if it was not throttled by then. */
async function coresOf(site: HostingSite, server: HostedView): Promise<number> {
  const look = async () => {
    const path = `/containers/${server.provider_workspace_id}/stats`;
    const { read, cpu_stats } = await site.docker<Stats>('GET', path, {
      stream: 'false',
      'one-shot': 'true',
    });
    const { cpu_usage, throttling_data } = cpu_stats;
    return {
      at: Date.parse(read),
      usedMs: cpu_usage.total_usage / 1e6,
      throttled: throttling_data.throttled_periods,
    };
  };
  const first = await look();
  for (;;) {
    await delay(500);
    const last = await look();
    const isKeptFromMore = last.throttled > first.throttled;
    if (isKeptFromMore && last.at - first.at > 2_000)
      return (last.usedMs - first.usedMs) / (last.at - first.at);
  }
}

function amountsIn(text: string, pattern: RegExp): number[] {
  return [...text.matchAll(pattern)].map(([, amount]) => Number(amount));
}
