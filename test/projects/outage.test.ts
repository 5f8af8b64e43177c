import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CallList, StatusView } from '../../src/api/views.ts';
import { freshDatabase, type TestDatabase } from '../helpers/database.ts';
import { proxyDatabase } from '../helpers/database-proxy.ts';
import { postgresIn } from '../helpers/postgres.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Site, type TestProject } from './site.ts';

const statusOf = (site: Site) => site.done<StatusView>('GET /status');

/** The API has no event for this, so it polls. */
async function statusOnce(site: Site, fits: (status: StatusView) => boolean): Promise<StatusView> {
  for (;;) {
    const status = await statusOf(site);
    if (fits(status)) return status;
  }
}

const isAway = ({ database }: StatusView) => !database.connected;
const isBack = ({ database, records }: StatusView) => database.connected && records?.queued === 0;

async function recordedTexts(project: TestProject): Promise<unknown[]> {
  const { calls } = await project.done<CallList>('GET /calls?tool=echo');
  return calls.map(({ input }) => (input as { text: string } | null)?.text).toReversed();
}

describe('while the database is unreachable', () => {
  let database: TestDatabase;
  let proxy: Awaited<ReturnType<typeof proxyDatabase>>;
  let site: Site;

  setUp(async (use) => {
    database = use(await freshDatabase());
    proxy = use(await proxyDatabase(database.url));
    site = use(await Site.start('server', { mcpServers: {} }, { url: proxy.url }));
  });

  async function loseDatabase(): Promise<void> {
    proxy.cut();
    onTestFinished(async () => {
      proxy.restore();
      await statusOnce(site, isBack);
    });
    await statusOnce(site, isAway);
  }

  it('calls, lists and new sessions work, and records are written afterwards', async () => {
    const project = await site.project({ record_payloads: true });
    await project.add('box');
    await project.add('later', { fixture: 'notes' });
    const client = await project.client();
    await client.session.callText('echo', { text: 'before' });
    await loseDatabase();
    expect(await client.session.callText('echo', { text: 'while' })).toBe('while');
    expect(await client.tools()).toContain('echo');
    const session = await RawSession.open(project.url);
    expect(await session.toolNames()).toContain('touch');
    expect(await session.callText('echo', { text: 'another' })).toBe('another');
    expect((await session.call('touch', { uri: 'note://todo' })).error).toBeUndefined();

    const { database: shown, records } = await statusOf(site);
    expect(shown).toEqual({ mode: 'server', connected: false, error: expect.any(String) });
    expect(records).toEqual({ queued: expect.any(Number), dropped: 0 });
    expect(records?.queued).toBeGreaterThanOrEqual(3);
    expect(await site.warning(/The database is unavailable/)).toContain('Calls continue');

    proxy.restore();
    await site.warning(/The database is available again/);
    const status = await statusOnce(site, isBack);
    expect(status.database).toEqual({ mode: 'server', connected: true, error: null });
    expect(await recordedTexts(project)).toEqual(['before', 'while', 'another']);
  });

  it('changes fail with a clear error, known data is shown, and changes work again afterwards', async () => {
    const project = await site.project();
    await project.add('box');
    const client = await project.client();
    await client.toolsOnce((names) => names.includes('echo'));
    const server = { name: 'more', transport: 'stdio', config: fixtureServer('notes') };
    const changes: [string, unknown?][] = [
      ['POST /servers', server],
      ['PATCH /servers/box', { enabled: false }],
      ['DELETE /servers/box'],
      ['PATCH /tools/echo', { enabled: false }],
      ['PUT /secrets/TOKEN', { value: 'not to be seen' }],
      ['POST /products', { name: 'acme', version: '1', mcp: { servers: [] } }],
      ['POST /import', { mcpServers: { more: fixtureServer('notes') } }],
      ['PATCH ', { description: 'changed' }],
      ['DELETE '],
      ['GET /calls'],
    ];
    await loseDatabase();
    const { password } = new URL(database.url);
    const answers = await Promise.all(changes.map(([what, body]) => project.ask(what, body)));
    answers.push(await site.ask('POST /projects', { name: 'never' }), await site.ask('POST /secrets/rotate'));
    for (const { status, text, body } of answers) {
      expect(status).toBe(503);
      expect(body.error?.code).toBe('database_unavailable');
      expect(body.error?.message).toMatch(
        /^The database at 127\.0\.0\.1:\d+\/\w+ cannot be reached: .*reconnects automatically\.$/,
      );
      expect(text).not.toContain(password);
    }
    for (const what of ['GET ', 'GET /servers', 'GET /servers/box', 'GET /tools', 'GET /secrets']) {
      expect([what, (await project.ask(what)).status]).toEqual([what, 200]);
    }
    expect(await client.tools()).toContain('echo');
    expect((await site.ask('GET /projects')).status).toBe(200);

    proxy.restore();
    await statusOnce(site, isBack);
    expect(await client.toolsAfter(() => project.change('box', { enabled: false }))).toEqual([]);
    expect((await site.ask('GET /projects/never')).status).toBe(404);
    expect(JSON.stringify(site.switchboard.events)).not.toContain(password);
  });

  it('edits of the configuration file take effect', async () => {
    const project = await site.defaultProject();
    const client = await project.client();
    await loseDatabase();
    const filed = fixtureServer('toolbox');
    await client.toolsAfter(
      () => site.configured({ mcpServers: { filed } }),
      (names) => names.includes('echo'),
    );
    await client.toolsAfter(
      () => site.configured({ mcpServers: {} }),
      (names) => names.length === 0,
    );
  });

  it('and its connections hang, calls and lists work', async () => {
    const project = await site.project();
    await project.add('box');
    const client = await project.client();
    await client.session.callText('echo', { text: 'before' });
    proxy.freeze();
    onTestFinished(async () => {
      proxy.restore();
      await statusOnce(site, isBack);
    });
    expect(await client.session.callText('echo', { text: 'while' })).toBe('while');
    expect(await client.tools()).toContain('echo');
    expect(await (await RawSession.open(project.url)).callText('echo', { text: 'x' })).toBe('x');
  });

  it('Switchboard can be stopped, and reports what is lost', async () => {
    await using fresh = await freshDatabase();
    await using gone = await proxyDatabase(fresh.url);
    const stopping = await Site.start(
      'server',
      { mcpServers: { box: fixtureServer('toolbox') } },
      { url: gone.url },
    );
    const session = await RawSession.open(stopping.switchboard.url);
    await session.callText('echo', { text: 'before' });
    gone.cut();
    await statusOnce(stopping, isAway);
    await session.callText('echo', { text: 'while' });
    const exited = once(stopping.switchboard.process, 'exit');
    await stopping[Symbol.asyncDispose]();
    expect(await exited).toEqual([0, null]);
    expect(await stopping.warning(/could not be written and are lost/)).toMatch(/^\d+ records of calls/);
  });
});

it('Switchboard waits for a database that starts later', async () => {
  await using database = await freshDatabase();
  const { port, hostname, password, pathname } = new URL(database.url);
  let attempts = 0;
  const late = createServer((near) => {
    near.on('error', () => {});
    if (++attempts <= 2) {
      near.destroy();
      return;
    }
    const far = connect(Number(port), hostname).on('error', () => near.destroy());
    near.pipe(far).pipe(near);
  }).listen(0, '127.0.0.1');
  await once(late, 'listening');
  onTestFinished(() => void late.close());
  const url = new URL(database.url);
  url.port = String((late.address() as AddressInfo).port);
  await using switchboard = await startSwitchboard({}, {}, { database: { url: url.href } });
  const waiting = switchboard.events
    .filter(({ event }) => event === 'progress')
    .map(({ message }) => message);
  expect(waiting).toEqual([
    expect.stringContaining(`waiting for the database at 127.0.0.1:${url.port}${pathname}`),
  ]);
  expect(JSON.stringify(switchboard.events)).not.toContain(password);
  expect(attempts).toBeGreaterThan(2);
});

it('an embedded database restarts when it is killed', async () => {
  await using site = await Site.start('embedded');
  const project = await site.createProject('kept', { record_payloads: true });
  await project.add('box');
  const client = await project.client();
  await client.session.callText('echo', { text: 'before' });
  const pid = postgresIn(site.home)!;
  process.kill(pid, 'SIGKILL');
  expect(await client.session.callText('echo', { text: 'while' })).toBe('while');
  await site.warning(/The database is unavailable/);
  expect(await client.session.callText('echo', { text: 'after' })).toBe('after');
  await site.warning(/started again if it has ended/);
  await site.warning(/The database is available again/);
  expect(postgresIn(site.home)).not.toBe(pid);
  expect((await statusOnce(site, isBack)).database).toEqual({
    mode: 'embedded',
    connected: true,
    error: null,
  });
  expect(await recordedTexts(project)).toEqual(['before', 'while', 'after']);
  expect(await client.toolsAfter(() => project.change('box', { enabled: false }))).toEqual([]);
  await site.restart();
  expect(await project.server('box')).toMatchObject({ enabled: false });
});
