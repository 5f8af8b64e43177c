import { existsSync, globSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { connectHttp, textOf } from '../helpers/clients.ts';
import { freePort } from '../helpers/free-port.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { HostingSite, sharedHostingSite } from './hosting-site.ts';

/** The kernel version that gVisor reports on every host. */
const gvisorKernel = 'Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n';

describe.concurrent('a registered server', () => {
  const open = sharedHostingSite();

  it('[H1, H16, H18] runs in a container of its image, isolated by gVisor, behind a bridge', async ({
    skip,
  }) => {
    const site = await open({ skip });
    const image = await site.image('inspects-sandbox');
    const answer = await site.site.ask<{ id: string }>('POST /mcp/servers', {
      name: 'langfuse-mcp',
      image,
      stdio_bridge: true,
      restart_policy: 'always',
    });
    expect(answer.status).toBe(201);
    const { id } = answer.body;
    expect(answer.headers.location).toBe(`/api/v1/mcp/servers/${id}`);
    const server = await site.reaches(id, ({ status }) => status === 'ready');

    const limits = { cpu: '0.5', memory: '512M', disk: '1G', pids: 128 };
    expect(await site.rowReaches(id, ({ status }) => status === 'ready')).toMatchObject({
      container_type: 'mcp_server',
      lifecycle: 'persistent',
      provider: 'gvisor',
      provider_workspace_id: server.provider_workspace_id,
      resource_limits: limits,
      mcp_config: { image, stdio_bridge: true, restart_policy: 'always', provider: null },
      created_at: expect.any(Date),
      updated_at: expect.any(Date),
    });
    expect(await site.inspect(server)).toMatchObject({
      Config: { Image: image },
      State: { Running: true },
      HostConfig: { Runtime: 'runsc', NanoCpus: 500_000_000, Memory: 512 * 2 ** 20 },
    });
    expect(server).toMatchObject({
      provider: 'gvisor',
      requested_provider: null,
      container_status: 'running',
      resource_limits: limits,
      url: null,
    });
    expect(JSON.parse(await site.tool(id, 'read', { path: '/proc/version' }))).toBe(gvisorKernel);
  });

  it('[H2] is published at the requested port, or else always at the same one', async ({ skip }) => {
    const site = await open({ skip });
    const serves = { image: await site.image('serves-http'), stdio_bridge: false };
    const host = await freePort();
    const [chosen, any] = await Promise.all([
      site.host({ ...serves, port: { container: 8123, host } }),
      site.host({ ...serves, port: 8123 }),
    ]);
    expect(chosen).toMatchObject({ port: 8123, host_port: host, url: `http://127.0.0.1:${host}` });
    expect((await site.row(chosen.id))?.mcp_config).toMatchObject({ port: 8123, host_port: host });
    expect(any).toMatchObject({ port: 8123, host_port: null });
    await site.site.done(`POST /mcp/servers/${any.id}/restart`);
    const again = await site.reaches(any.id, ({ status }) => status === 'ready');
    expect(again.url).toBe(any.url);
    expect(again.provider_workspace_id).not.toBe(any.provider_workspace_id);
    const { metadata } = await site.rowReaches(any.id, ({ status }) => status === 'ready');
    expect(metadata.memory.hostPort).toBe(Number(new URL(any.url!).port));
  });

  it('[H2] is reached over HTTP, on loopback only, if it has a port and no bridge', async ({ skip }) => {
    const site = await open({ skip });
    const server = await site.host({
      name: 'over-http',
      image: await site.image('serves-http'),
      stdio_bridge: false,
      port: 8123,
    });
    const { Ports } = (await site.inspect(server)).NetworkSettings;
    const [published] = Ports['8123/tcp']!;
    expect(Ports['8123/tcp']!.map(({ HostIp }) => HostIp)).toEqual(['127.0.0.1']);
    expect(server.url).toBe(`http://127.0.0.1:${published!.HostPort}`);
    expect(await site.inspect(server)).toMatchObject({
      Config: { OpenStdin: false, AttachStdin: false },
      State: { Running: true },
    });

    // First through the gateway, which waits until the server listens.
    await using ofGateway = await connectHttp(`${site.site.baseUrl}/mcp/default`);
    const given = { name: 'over-http__echo', arguments: { text: 'through the gateway' } };
    expect(textOf(await ofGateway.client.callTool(given))).toBe('through the gateway');
    await using direct = await connectHttp(`${server.url}/mcp`);
    const kernel = await direct.client.callTool({ name: 'kernel', arguments: {} });
    expect(textOf(kernel)).toBe(gvisorKernel);
    expect(await site.tool(server.id, 'echo', { text: 'over the API' })).toBe('over the API');

    for (const address of otherAddresses()) {
      await expect(fetch(`http://${address}:${published!.HostPort}/mcp`)).rejects.toThrow();
    }
  });

  it('[H3] gets the given environment, which is shown to no other party', async ({ skip }) => {
    const site = await open({ skip });
    const { witness: _witness, switchboard } = site.site;
    await site.site.done('PUT /projects/default/secrets/DB_PASSWORD', { value: 'sesame-of-the-database' });
    const server = await site.host({
      name: 'with-environment',
      image: await site.image('inspects-sandbox'),
      environment: {
        API_KEY: 'plain-key-of-the-test',
        DB_URL: `postgres://app:\${DB_PASSWORD}@db/app`,
      },
    });
    const { id } = server;
    expect(JSON.parse(await site.tool(id, 'environment'))).toMatchObject({
      API_KEY: 'plain-key-of-the-test',
      DB_URL: 'postgres://app:sesame-of-the-database@db/app',
    });

    const shown = [
      (await site.site.ask('GET /mcp/servers')).text,
      (await site.site.ask(`GET /mcp/servers/${id}`)).text,
      (await site.site.ask(`PATCH /mcp/servers/${id}`, { restart_policy: 'on-failure' })).text,
      (await site.site.ask('GET /projects/default/servers')).text,
      await site.log(id),
      JSON.stringify(switchboard.events),
      processList(),
    ].join('\n');
    expect(server.environment.toSorted()).toEqual(['API_KEY', 'DB_URL']);
    expect(shown).toContain('with-environment');
    for (const value of ['plain-key-of-the-test', 'sesame-of-the-database']) {
      expect(shown).not.toContain(value);
    }
    // References are stored as references, and the secret is encrypted.
    const rows = await site.site.query('SELECT mcp_config::text FROM kb.agent_workspaces WHERE id = $1', [
      id,
    ]);
    expect(JSON.stringify(rows)).not.toContain('sesame-of-the-database');
  });

  it('[H14] is listed with its status, image and summary, and without secrets', async ({ skip }) => {
    const site = await open({ skip });
    const image = await site.image('inspects-sandbox');
    const stopped = await site.register({
      name: 'a-stopped-one',
      image,
      enabled: false,
      environment: { TOKEN: 'token-that-is-secret' },
      volumes: ['/data'],
      resource_limits: { cpu: '1', memory: '1G' },
    });
    const { text, body } = await site.site.ask<{ servers: object[] }>('GET /mcp/servers?project=default');
    expect(body.servers).toContainEqual(
      expect.objectContaining({
        id: stopped.id,
        name: 'a-stopped-one',
        project: 'default',
        image,
        status: 'stopped',
        container_status: 'stopped',
        stdio_bridge: true,
        restart_policy: 'always',
        environment: ['TOKEN'],
        volumes: ['/data'],
        resource_limits: { cpu: '1', memory: '1G', disk: '1G', pids: 128 },
      }),
    );
    expect(text).not.toContain('token-that-is-secret');
    expect(await site.containers(stopped.id)).toEqual([]);
  });

  it('[H18] waits for the requested isolation, says why, and runs with no other', async ({ skip }) => {
    const site = await open({ skip });
    const { id } = await site.register({
      image: await site.image('inspects-sandbox'),
      provider: 'firecracker',
    });
    const server = await site.reaches(id, ({ status }) => status === 'waiting');
    expect(server).toMatchObject({
      requested_provider: 'firecracker',
      container_status: 'restarting',
      health: 'warning',
      error: expect.stringMatching(/provider "firecracker".*cannot be used/),
    });
    expect(await site.call(id, 'tools/list')).toMatchObject({
      status: 503,
      body: { error: { code: 'server_unavailable', message: expect.stringContaining('firecracker') } },
    });
    expect(await site.containers(id)).toEqual([]);
  });

  it('reports a missing image, and does not retry', async ({ skip }) => {
    const site = await open({ skip });
    const { id } = await site.register({ name: 'of-nothing', image: 'localhost:1/switchboard-test/nothing' });
    const server = await site.reaches(id, ({ error }) => error !== null);
    expect(server.error).toContain('localhost:1/switchboard-test/nothing');
    expect(await site.containers(id)).toEqual([]);
  });
});

describe.concurrent('without any isolation', () => {
  const command = fixtureServer('toolbox');

  it('[H18] no server silently runs with less isolation', async () => {
    await using site = await HostingSite.start();
    const { id } = await site.register({ image: 'mcp/time', ...command, env: undefined });
    const { error } = await site.reaches(id, ({ status }) => status === 'waiting');
    expect(error).toMatch(/No provider that isolates servers is available/);
    for (const provider of ['gvisor', 'firecracker', 'e2b']) expect(error).toContain(`  ${provider}: `);
    expect(await site.site.warning(/is waiting/)).toContain('No provider that isolates');
    expect(childrenOf(site.site.switchboard.process.pid!)).toEqual([]);
  });

  it('[H18] a weaker provider is used if the settings allow it', async () => {
    await using site = await HostingSite.start({ settings: { allow: ['process'] } });
    const server = await site.host({ ...command, env: undefined });
    expect(server).toMatchObject({ provider: 'process', requested_provider: null });
    expect(await site.tool(server.id, 'echo', { text: 'hello' })).toBe('hello');
  });
});

function otherAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal)
    .map(({ address }) => address);
}

/** The command lines of all processes on this machine. */
function processList(): string {
  return globSync('/proc/[0-9]*/cmdline').map(read).join('\n');
}

function childrenOf(pid: number): string[] {
  return globSync('/proc/[0-9]*/stat')
    .map(read)
    .filter((stat) => stat.slice(stat.lastIndexOf(')')).split(' ')[2] === String(pid));
}

/** Empty if the process has ended meanwhile. */
function read(path: string): string {
  try {
    return existsSync(path) ? readFileSync(path, 'utf8').replaceAll('\0', ' ') : '';
  } catch {
    return '';
  }
}
