import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { HostedView } from '../../src/api/hosted-views.ts';
import { groupRuns } from '../../src/channels/process-table.ts';
import { freshDatabase } from '../helpers/database.ts';
import { proxyDatabase } from '../helpers/database-proxy.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { Site } from '../projects/site.ts';
import { isReady, sharedProcessSite } from './hosting-site.ts';

describe.concurrent('hosted servers', () => {
  const shared = sharedProcessSite();

  it('start even if Switchboard aborts on a failed start', async () => {
    await using site = await Site.start('server', {
      mcpServers: {},
      switchboard: { onStartFailure: 'abort', hosting: { engine: '/nonexistent/docker.sock' } },
    });
    const { command, args } = fixtureServer('toolbox');
    const { id } = await site.done<HostedView>('POST /mcp/servers', {
      ...{ name: 'box', provider: 'process', command, args },
    });
    await site.restart();
    const { status } = await site.ask(`POST /mcp/servers/${id}/call`, { method: 'tools/list' });
    expect(status).toBe(200);
  });

  it('are rejected with a name or group that the configuration file uses', async () => {
    const { command, args } = fixtureServer('toolbox');
    await using site = await Site.start('server', {
      mcpServers: { box: { command, args }, other: { command, args, group: 'boxes' } },
      switchboard: { hosting: { engine: '/nonexistent/docker.sock' } },
    });
    const register = async (name: string) =>
      (await site.ask('POST /mcp/servers', { name, provider: 'process', command, args })).body.error?.message;
    expect(await register('box')).toBe(
      'The configuration file already has a server "box": choose another name.',
    );
    expect(await register('boxes')).toBe(
      'The configuration file already has a group "boxes": choose another name.',
    );
  });

  it.each([
    ['of the requested kind', { provider: 'docker' }],
    ['of any kind', {}],
  ])(
    'cannot be removed without a provider %s to delete their volumes, unless the volumes are kept',
    async (_which, asked) => {
      const site = await shared();
      const { id, name } = await site.register({ image: 'mcp/none', volumes: ['/data'], ...asked });
      const { status, body } = await site.remove(id, '?volumes=delete');
      expect(status).toBe(409);
      expect(body.error!).toMatchObject({
        message: expect.stringMatching(
          /\(\/data\) cannot be removed now, so nothing was removed: [\s\S]*without volumes=delete/,
        ),
        details: { server: name, volumes: ['/data'] },
      });
      expect((await site.site.ask(`GET /mcp/servers/${id}`)).status).toBe(200);
      expect((await site.remove(id)).status).toBe(204);
    },
  );

  it('get secrets in their command and arguments, which are never shown', async () => {
    const site = await shared();
    const { command, args } = fixtureServer('inspects-sandbox');
    const secrets = {
      NODE_COMMAND: command,
      SESAME: 'open-sesame-please',
      NO_COMMAND: '/nowhere/very-secret',
    };
    for (const [name, value] of Object.entries(secrets))
      await site.site.done(`PUT /projects/default/secrets/${name}`, { value });
    const { id } = await site.host({
      ...{
        provider: 'process',
        command: `\${NODE_COMMAND}`,
        args: [...args, `--token=\${SESAME}`, `\${HOME}`],
      },
    });
    expect(JSON.parse(await site.tool(id, 'arguments'))).toEqual(['--token=open-sesame-please', `\${HOME}`]);
    const broken = await site.register({
      provider: 'process',
      command: `\${NO_COMMAND}`,
      args: [`\${SESAME}`],
    });
    const view = await site.reaches(broken.id, ({ error }) => error !== null);
    expect(view.error).toContain('"***" was not found');
    const restarted = await site.site.ask(`POST /mcp/servers/${broken.id}/restart`);
    expect(restarted.status).not.toBe(200);
    const shown = [await site.view(id), view, restarted.text, await site.log(broken.id), await site.log(id)];
    for (const text of shown)
      for (const value of Object.values(secrets)) expect(JSON.stringify(text)).not.toContain(value);
  });

  it('without volumes are removed without any provider', async () => {
    const site = await shared();
    const { id } = await site.register({ image: 'mcp/none', provider: 'docker' });
    expect((await site.remove(id, '?volumes=delete')).status).toBe(204);
    expect((await site.site.ask(`GET /mcp/servers/${id}`)).status).toBe(404);
  });

  it('that have exited start again on request', async () => {
    const site = await shared();
    const config = {
      provider: 'process',
      command: process.execPath,
      args: ['-e', ''],
      restart_policy: 'never',
    };
    const { id } = await site.register(config);
    await site.reaches(id, ({ status }) => status === 'stopped');
    const started = await site.site.done<HostedView>(`POST /mcp/servers/${id}/start`);
    expect(started.status).not.toBe('stopped');
    await site.reaches(id, ({ status }) => status === 'stopped');
    expect((await site.log(id)).match(/^running /gm)).toHaveLength(2);
  });

  it('that were inserted into the database by hand work, and a bad row does not affect others', async () => {
    const site = await shared();
    const { command, args } = fixtureServer('toolbox');
    const insert = async (config: object) => {
      const name = `by-hand-${randomUUID().slice(0, 8)}`;
      const [row] = await site.site.query<{ id: string }>(
        `INSERT INTO kb.agent_workspaces (project_id, name, status, mcp_config) VALUES ($1, $2, 'starting', $3) RETURNING id`,
        [site.owner, name, config],
      );
      return row!.id;
    };
    const empty = await insert({});
    const wrong = await insert({ provider: 'process', command, args, environment: 7, volumes: 'none' });
    const short = await insert({ provider: 'process', command, args });
    const other = await site.host(site.process('toolbox'));
    expect(await site.reaches(short, isReady)).toMatchObject({
      restart_policy: 'always',
      resource_limits: { cpu: '0.5', memory: '512M', disk: '1G', pids: 128 },
    });
    expect((await site.call(short, 'tools/list')).status).toBe(200);
    expect((await site.call(other.id, 'tools/list')).status).toBe(200);
    const isNotRun = ({ status, error }: HostedView) => status === 'failed' && error !== null;
    expect((await site.reaches(wrong, isNotRun)).error).toMatch(
      /mcp_config\.volumes.*mcp_config\.environment/,
    );
    expect((await site.view(empty)).container_status).not.toBe('running');
  });
});

describe.concurrent('a stop', () => {
  it('ends all servers at once, even with a call in flight and the database down', async () => {
    await using database = await freshDatabase();
    await using proxy = await proxyDatabase(database.url);
    const config = { mcpServers: {}, switchboard: { hosting: { engine: '/nonexistent/docker.sock' } } };
    await using site = await Site.start('server', config, { url: proxy.url });
    const { command, args } = fixtureServer('toolbox');
    const register = async (name: string) => {
      const environment = site.witness.env(name);
      const input = { name, provider: 'process', command, args, environment };
      return (await site.done<HostedView>('POST /mcp/servers', input)).id;
    };
    const [busy, idle] = [await register('busy'), await register('idle')];
    const call = (id: string, name: string) =>
      site.ask(`POST /mcp/servers/${id}/call`, { method: 'tools/call', params: { name, arguments: {} } });
    expect((await call(idle, 'pid')).status).toBe(200);
    const pending = call(busy, 'wait').catch((error: Error) => error);
    await site.witness.sees('busy', 'waiting');
    proxy.cut();
    const { process } = site.switchboard;
    const exited = once(process, 'exit');
    process.kill('SIGTERM');
    await Promise.all(['busy', 'idle'].map((name) => site.witness.sees(name, 'end')));
    expect(await exited).toEqual([0, null]);
    await pending;
  });
});

describe.concurrent('of two Switchboards on one database', () => {
  it('one hosts; the other takes over when the first loses the database, and keeps the servers', async ({
    expect,
  }) => {
    await using database = await freshDatabase();
    await using proxy = await proxyDatabase(database.url);
    const config = { mcpServers: {}, switchboard: { hosting: { engine: '/nonexistent/docker.sock' } } };
    await using first = await Site.start('server', config, { url: proxy.url });
    const { command, args } = fixtureServer('toolbox');
    const input = { name: 'box', provider: 'process', command, args, environment: first.witness.env('box') };
    const { id } = await first.done<HostedView>('POST /mcp/servers', input);
    const pid = async (site: Site) => {
      const params = { name: 'pid', arguments: {} };
      const { status, body } = await site.ask<{ result: { content: { text: string }[] } }>(
        `POST /mcp/servers/${id}/call`,
        { method: 'tools/call', params },
      );
      return status === 200 ? Number(body.result.content[0]!.text) : body.error!.message;
    };
    const before = await pid(first);
    expect(before).toBeTypeOf('number');

    await using second = await Site.start('server', config, { url: database.url });
    expect(await second.done<HostedView>(`GET /mcp/servers/${id}`)).toMatchObject({ hosted_here: false });
    expect(await pid(second)).toContain('another Switchboard');
    expect(await second.ask(`POST /mcp/servers/${id}/restart`)).toMatchObject({ status: 503 });

    proxy.cut();
    await first.witness.severalOf('box', 'start', 2);
    await expect.poll(() => pid(second)).toBeTypeOf('number');
    const after = await pid(second);
    proxy.restore();
    await first.witness.sees('box', 'end');
    await expect.poll(() => pid(first)).toContain('another Switchboard');
    expect(groupRuns(before as number)).toBe(false);
    expect(await pid(second)).toBe(after);
    const rows = await second.query('SELECT status, provider_workspace_id FROM kb.agent_workspaces');
    expect(rows).toEqual([{ status: 'ready', provider_workspace_id: String(after) }]);
  });
});
