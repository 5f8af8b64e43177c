import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ServerView } from '../../src/api/views.ts';
import { proxyDatabase } from '../helpers/database-proxy.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { Site, TestProject } from './site.ts';
import { type TestClient, textOfCall } from './test-client.ts';

const variable = (name: string) => `\${${name}}`;
const key = { SWITCHBOARD_SECRET_KEY: randomBytes(32).toString('base64') };

/** Changes go through one Switchboard, and clients are connected to the other. */
describe('a change through another process on the same database', () => {
  let here: Site;
  let there: Site;
  let proxy: Awaited<ReturnType<typeof proxyDatabase>>;

  setUp(async (use) => {
    here = use(await Site.start('server', { mcpServers: {} }, { env: key }));
    proxy = use(await proxyDatabase(here.switchboard.databaseUrl!));
    there = use(await Site.start('server', { mcpServers: {} }, { env: key, url: proxy.url }));
  });

  /** A project with a server that is created `here`, and a client of it that is connected `there`. */
  async function start(
    server: Parameters<TestProject['add']>[1] = {},
  ): Promise<{ project: TestProject; remote: TestProject; client: TestClient }> {
    const project = await here.project();
    const remote = new TestProject(there, project.id, project.name);
    await eventually(async () => (await remote.ask('GET /servers')).status === 200);
    const client = await remote.client();
    await client.settled(() => project.add('box', server));
    return { project, remote, client };
  }

  /** Polls for changes that are not announced to clients. */
  async function eventually(isSo: () => Promise<boolean>): Promise<void> {
    while (!(await isSo()));
  }

  const has = (name: string) => (names: string[]) => names.includes(name);
  const lacks = (name: string) => (names: string[]) => !names.includes(name);
  const changedConfig = () => fixtureServer('toolbox', { COLOUR: 'blue' });

  it.each<[string, (project: TestProject) => Promise<unknown>, (names: string[]) => boolean]>([
    ['a server is added', (project) => project.add('notes', { fixture: 'notes' }), has('touch')],
    ['a server is disabled', (project) => project.change('box', { enabled: false }), lacks('echo')],
    ['a server is removed', (project) => project.done('DELETE /servers/box'), lacks('echo')],
    ['a server is renamed', (project) => project.change('box', { name: 'chest', prefix: 'c' }), has('echo')],
    [
      'a tool is switched off',
      (project) => project.done('PATCH /tools/echo', { enabled: false }),
      lacks('echo'),
    ],
    [
      'a product is installed',
      (project) =>
        project.done('POST /products', {
          name: 'acme',
          version: '1',
          mcp: { servers: [{ name: 'brought', transport: 'stdio', ...fixtureServer('notes') }] },
        }),
      has('touch'),
    ],
    [
      'a server is imported',
      (project) => project.done('POST /import', { mcpServers: { notes: fixtureServer('notes') } }),
      has('touch'),
    ],
    [
      'a row is changed with SQL',
      (project) =>
        here.query('UPDATE kb.project_mcp_servers SET enabled = false WHERE project_id = $1', [project.id]),
      lacks('echo'),
    ],
    [
      'a row is deleted with SQL',
      (project) => here.query('DELETE FROM kb.project_mcp_servers WHERE project_id = $1', [project.id]),
      lacks('echo'),
    ],
  ])('reaches clients: %s', async (_what, change, fits) => {
    const { project, client } = await start();
    await client.toolsAfter(() => change(project), fits);
  });

  it('reaches clients: a server is enabled, and a tool is enabled', async () => {
    const { project, client } = await start();
    await client.toolsAfter(() => project.change('box', { enabled: false }), lacks('echo'));
    await client.toolsAfter(() => project.change('box', { enabled: true }), has('echo'));
    await client.toolsAfter(() => project.done('PATCH /tools/echo', { enabled: false }), lacks('echo'));
    await client.toolsAfter(() => project.done('PATCH /tools/box__echo', { enabled: true }), has('echo'));
  });

  it('restarts a changed server, whose calls in flight finish', async () => {
    const { project, client } = await start();
    const pid = await client.session.callText('pid');
    const call = await client.waitingCall();
    await client.toolsAfter(() => project.change('box', { config: changedConfig() }));
    expect(await client.session.callText('environment', { name: 'COLOUR' })).toBe('blue');
    expect(await client.session.callText('pid')).not.toBe(pid);
    here.witness.tell(project.who('box'), 'go');
    expect(await textOfCall(call)).toBe('waited');
  });

  it('gives servers the new value of a secret', async () => {
    const { project, client } = await start({ env: { TOKEN: `\${TOKEN:-none}` } });
    const announced = client.announced('tools');
    await project.done('PUT /secrets/TOKEN', { value: 'first value' });
    await announced;
    const value = () => client.session.callText('environment', { name: 'TOKEN' });
    expect(await value()).toBe('first value');
    const announcement = client.announced('tools');
    await project.done('PUT /secrets/TOKEN', { value: 'second value' });
    await announcement;
    await eventually(async () => (await value()) === 'second value');
    // A new key changes no value, so nothing restarts.
    const pid = await client.session.callText('pid');
    await here.done('POST /secrets/rotate');
    expect(await client.session.callText('pid')).toBe(pid);
    await project.done('DELETE /secrets/TOKEN');
    await eventually(async () => (await value()) === 'none');
  });

  it('creates a project, renames it, and ends its sessions when it is removed', async () => {
    const { project, client } = await start();
    const renamed = `${project.name}-renamed`;
    await here.done(`PATCH /projects/${project.id}`, { name: renamed, record_payloads: true });
    await eventually(async () => (await there.ask(`GET /projects/${renamed}`)).status === 200);
    expect(await there.done(`GET /projects/${project.id}`)).toMatchObject({
      name: renamed,
      record_payloads: true,
    });
    await here.done(`DELETE /projects/${renamed}`);
    await client.stream.ended;
    expect((await there.ask(`GET /projects/${project.id}`)).status).toBe(404);
  });

  it('does not undo later changes of the other process', async () => {
    const { project, remote } = await start();
    const { headers } = await project.ask<ServerView>('GET /servers/box');
    const etag = { 'if-match': String(headers.etag) };
    expect((await remote.ask('PATCH /servers/box', { description: 'there' }, etag)).status).toBe(200);
    const late = await project.ask('PATCH /servers/box', { description: 'here' }, etag);
    expect(late.status).toBe(412);
    expect(late.body.error).toMatchObject({ code: 'version_conflict' });
    await Promise.all([
      project.change('box', { description: 'changed here' }),
      remote.change('box', { labels: { changed: 'there' } }),
    ]);
    await eventually(async () => (await project.server('box')).version === 4);
    expect(await project.server('box')).toMatchObject({
      description: 'changed here',
      labels: { changed: 'there' },
    });
  });

  it('appears in the records of calls through the other process', async () => {
    const { project, client } = await start();
    await client.session.callText('echo', { text: 'over there' });
    await eventually(async () => {
      const { calls } = await project.done<{ calls: { tool: string }[] }>('GET /calls');
      return calls.some(({ tool }) => tool === 'echo');
    });
  });

  describe('is caught up with', () => {
    const listeningThere = `
      FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = $1 AND query = 'LISTEN switchboard'`;
    const nameThere = () => `switchboard ${there.switchboard.process.pid}`;

    it('after the notification connection was lost', async () => {
      const { project, client } = await start();
      const announcement = client.announced('tools');
      const [lost] = await here.query(`SELECT pg_terminate_backend(pid) AS ended ${listeningThere}`, [
        nameThere(),
      ]);
      expect(lost).toEqual({ ended: true });
      await project.change('box', { enabled: false });
      await announcement;
      expect(await client.tools()).toEqual([]);
      await eventually(
        async () => (await here.query(`SELECT pid ${listeningThere}`, [nameThere()])).length > 0,
      );
    });

    it('after the database was unreachable for a while', async () => {
      const { project, client } = await start();
      const elsewhere = await start();
      const secret = await here.project();
      proxy.cut();
      onTestFinished(() => proxy.restore());
      await eventually(async () => {
        const { database } = await there.done<{ database: { connected: boolean } }>('GET /status');
        return !database.connected;
      });
      const announcement = client.announced('tools');
      await project.add('notes', { fixture: 'notes' });
      await project.done('PATCH /tools/echo', { enabled: false });
      await here.done(`DELETE /projects/${elsewhere.project.id}`);
      await here.done(`PATCH /projects/${secret.id}`, { description: 'changed' });
      const added = await here.project();
      expect(await client.tools()).toContain('echo');
      proxy.restore();
      await announcement;
      const names = await client.toolsOnce(has('touch'));
      expect(names).not.toContain('echo');
      await elsewhere.client.stream.ended;
      expect(await there.done(`GET /projects/${secret.id}`)).toMatchObject({ description: 'changed' });
      expect((await there.ask(`GET /projects/${added.name}`)).status).toBe(200);
    });

    it('after a failed read', async () => {
      const { project, client } = await start();
      await using lock = await here.connect();
      await using writer = await here.connect();
      const announcement = client.announced('tools');
      await lock.query('BEGIN');
      await lock.query('LOCK TABLE kb.projects IN ACCESS EXCLUSIVE MODE');
      // The change itself does not wait for the lock, because it adds no reference to the project.
      await writer.query('UPDATE kb.project_mcp_servers SET enabled = false WHERE project_id = $1', [
        project.id,
      ]);
      const blocked = `
        FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = $1 AND wait_event_type = 'Lock'`;
      const reading = async () =>
        (await writer.query(`SELECT pid ${blocked}`, [nameThere()])).rows.length > 0;
      await eventually(reading);
      await writer.query(`SELECT pg_terminate_backend(pid) ${blocked}`, [nameThere()]);
      await eventually(async () => !(await reading()));
      await lock.query('COMMIT');
      await announcement;
      expect(await client.tools()).toEqual([]);
    });
  });

  it('adds secrets that cannot be decrypted without their key, which is reported', async () => {
    await using another = await Site.start(
      'server',
      { mcpServers: {} },
      { url: here.switchboard.databaseUrl! },
    );
    const project = await here.project();
    const remote = new TestProject(another, project.id, project.name);
    await project.done('PUT /secrets/TOKEN', { value: 'sealed elsewhere' });
    await project.add('box', { env: { TOKEN: variable('TOKEN') } });
    await project.add('plain', { prefix: 'plain' });
    await eventually(async () => (await remote.ask('GET /servers/plain')).status === 200);
    const client = await remote.client();
    expect(await client.toolsOnce(has('echo'))).toContain('echo');
    const { error } = await remote.server('box');
    expect(error).toContain('The secret "TOKEN" was sealed with a key that is missing.');
    expect(error).not.toContain('sealed elsewhere');
  });
});
