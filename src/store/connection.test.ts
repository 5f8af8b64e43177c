import { sql } from 'kysely';
import type { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { administer, connectTo, freshDatabase } from '../../test/helpers/database.ts';
import { proxyDatabase } from '../../test/helpers/database-proxy.ts';
import { defaultProjectOf, openTestStore } from '../../test/helpers/store.ts';
import { addressOf, CONNECT_TIMEOUT_MS } from './client.ts';
import { Connections } from './connections.ts';
import { NotificationListener } from './listener.ts';
import type { Store } from './store.ts';

function follow(store: Store): (string | undefined)[] {
  const heard: (string | undefined)[] = [];
  store.subscribe((projectId) => heard.push(projectId));
  return heard;
}

async function isAwaited(client: Client, table: string): Promise<boolean> {
  const { rowCount } = await client.query(
    'SELECT FROM pg_locks WHERE NOT granted AND relation = $1::regclass',
    [table],
  );
  return rowCount === 1;
}

describe('subscribers', () => {
  it('are notified of changes by another process and by plain SQL, and of deleted projects', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    await using other = await openTestStore({ url: database.socketUrl });
    const heard = follow(store);
    const { id } = await other.projects.create({ name: 'followed' });
    await expect.poll(() => heard).toEqual([id]);
    await other.secrets.put(id, 'TOKEN', 'value');
    await expect.poll(() => heard.length).toBe(2);
    await using client = await connectTo(database.name);
    await client.query("INSERT INTO kb.switches (project_id, server_name) VALUES ($1, 'time')", [id]);
    await expect.poll(() => heard.length).toBe(3);
    await client.query('DELETE FROM kb.projects WHERE id = $1', [id]);
    await expect.poll(() => heard).toEqual([id, id, id, id]);
  });

  it('are notified once per transaction, and not of a rollback', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const id = await defaultProjectOf(store);
    const heard = follow(store);
    const server = { description: '', transport: 'stdio' as const, config: {}, settings: {}, enabled: true };
    const servers = ['a', 'b', 'c'].map((name) => ({ ...server, name }));
    await store.servers.create(id, servers, false);
    await expect(store.servers.create(id, [{ ...server, name: 'd' }, ...servers], false)).rejects.toThrow();
    await store.projects.setSwitch(id, 'a', 'tool', false);
    await expect.poll(() => heard).toEqual([id, id]);
  });

  it('are not notified after they unsubscribe', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const [gone, stays]: [unknown[], unknown[]] = [[], []];
    store.subscribe((id) => gone.push(id))();
    store.subscribe((id) => stays.push(id));
    await store.projects.create({ name: 'followed' });
    await expect.poll(() => stays).toHaveLength(1);
    expect(gone).toEqual([]);
  });
});

describe('when the database becomes unavailable', () => {
  it('changes fail at once, it reconnects automatically, and subscribers then refresh everything', async () => {
    await using database = await freshDatabase();
    await using proxy = await proxyDatabase(database.url);
    await using store = await openTestStore({ url: proxy.url });
    await store.projects.create({ name: 'before' });
    const heard = follow(store);
    await expect.poll(() => store.isConnected).toBe(true);
    proxy.cut();
    await expect.poll(() => store.isConnected).toBe(false);
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        await expect(store.projects.create({ name: 'during' })).rejects.toMatchObject({
          code: 'database_unavailable',
          message: expect.stringMatching(
            /^The database at 127.0.0.1:\d+\/\w+ cannot be reached: .* reconnects automatically\.$/,
          ),
        });
      }),
    );
    await using other = await openTestStore({ url: database.url });
    await other.projects.create({ name: 'missed' });
    proxy.restore();
    await expect.poll(() => store.isConnected).toBe(true);
    expect(heard.filter((id) => id === undefined)).toEqual([undefined]);
    expect(store.told).toEqual([expect.stringMatching(/^lost: /), 'connected']);
    const names = (await store.projects.all()).map(({ project }) => project.name);
    expect(names).toEqual(['default', 'before', 'missed']);
    await store.projects.create({ name: 'after' });
  });

  it('a silent connection is detected too', async () => {
    await using database = await freshDatabase();
    await using proxy = await proxyDatabase(database.url);
    const told: string[] = [];
    const listener = new NotificationListener(
      addressOf(proxy.url),
      {
        changed: () => told.push('changed'),
        connectionChanged: (isConnected, reason) => told.push(isConnected ? 'connected' : `${reason}`),
        silent: () => told.push('silent'),
      },
      100,
    );
    await listener.start();
    const { answers } = proxy;
    await expect.poll(() => proxy.answers).toBeGreaterThan(answers + 2);
    expect(told).toEqual([]);
    proxy.freeze();
    await expect.poll(() => told).toEqual(['silent', 'it does not answer']);
    proxy.restore();
    await expect.poll(() => told.slice(2)).toEqual(['connected', 'changed']);
    await listener.close();
  });

  it('and only the connections end, it is back at once', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    await store.projects.all();
    await administer(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database.name}'`,
    );
    await expect.poll(() => store.told).toEqual([expect.stringContaining('lost: terminating'), 'connected']);
    expect(await store.projects.all()).toHaveLength(1);
  });

  it('a change whose connection breaks is rolled back and fails', async () => {
    await using database = await freshDatabase();
    await using proxy = await proxyDatabase(database.url);
    await using store = await openTestStore({ url: proxy.url });
    const id = await defaultProjectOf(store);
    await using client = await connectTo(database.name);
    await client.query('BEGIN; LOCK TABLE kb.switches');
    const change = store.projects.setSwitch(id, 'time', null, false);
    change.catch(() => {});
    await expect.poll(() => isAwaited(client, 'kb.switches')).toBe(true);
    proxy.cut();
    await expect(change).rejects.toMatchObject({ code: 'database_unavailable' });
    await client.query('COMMIT');
  });

  it('closing does not wait for it', async () => {
    await using database = await freshDatabase();
    await using proxy = await proxyDatabase(database.url);
    const store = await openTestStore({ url: proxy.url });
    await store.projects.all();
    proxy.freeze();
    await store[Symbol.asyncDispose]();
  });
});

it('a slow statement does not make the database look unavailable', async () => {
  await using fresh = await freshDatabase();
  let suspicions = 0;
  const database = new Connections(addressOf(fresh.url), {
    outage: () => undefined,
    suspected: () => suspicions++,
  });
  try {
    const late = database.write(async (changes) => {
      await sql`SET LOCAL statement_timeout = 50`.execute(changes);
      await sql`SELECT pg_sleep(10)`.execute(changes);
    });
    await expect(late).rejects.toMatchObject({ code: 'internal' });
    expect(suspicions).toBe(0);
  } finally {
    await database.close();
  }
});

it('a query may wait for a free connection longer than the connect timeout', async () => {
  await using fresh = await freshDatabase();
  let suspicions = 0;
  const database = new Connections(addressOf(fresh.url), {
    outage: () => undefined,
    suspected: () => suspicions++,
  });
  try {
    const seconds = CONNECT_TIMEOUT_MS / 1_000 + 1;
    const all = Array.from({ length: 6 }, () =>
      database.run((queries) => sql`SELECT pg_sleep(${seconds})`.execute(queries)),
    );
    await Promise.all(all);
    expect(suspicions).toBe(0);
  } finally {
    await database.close();
  }
});

describe('opening', () => {
  it('waits for a database that is not running yet', async () => {
    await using database = await freshDatabase();
    await using proxy = await proxyDatabase(database.url);
    proxy.cut();
    const told: string[] = [];
    const opening = openTestStore({
      url: proxy.url,
      events: { progress: (text) => told.push(text), warned() {}, connectionChanged() {} },
    });
    await expect
      .poll(() => told)
      .toEqual([expect.stringContaining('waiting for the database at 127.0.0.1:')]);
    proxy.restore();
    await using store = await opening;
    expect(await store.projects.all()).toHaveLength(1);
  });

  it('stops when it is aborted', async () => {
    const aborting = new AbortController();
    const opening = openTestStore({
      url: 'postgres://user@127.0.0.1:1/none',
      signal: aborting.signal,
      events: { progress: () => aborting.abort(), warned() {}, connectionChanged() {} },
    });
    await expect(opening).rejects.toMatchObject({ name: 'AbortError' });
  });

  it.each([
    ['password', (url: URL) => (url.password = 'hunter2'), 'password authentication failed'],
    ['database', (url: URL) => (url.pathname = '/nowhere'), 'database "nowhere" does not exist'],
  ])('does not wait if the %s is wrong', async (_what, spoil, reason) => {
    await using database = await freshDatabase();
    const url = new URL(database.url);
    spoil(url);
    await expect(openTestStore({ url: url.href })).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining(reason),
    });
    await expect(openTestStore({ url: url.href })).rejects.not.toThrow(/hunter2/);
  });
});
