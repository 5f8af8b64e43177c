import { setImmediate as immediately } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { administer, connectTo, freshDatabase } from '../../test/helpers/database.ts';
import { proxyDatabase } from '../../test/helpers/database-proxy.ts';
import { Inbox } from '../../test/helpers/inbox.ts';
import { openTestStore } from '../../test/helpers/store.ts';
import { addressOf } from './client.ts';
import { HostLock } from './host-lock.ts';
import type { Store } from './store.ts';

function host(store: Store) {
  const roles = new Inbox<boolean>();
  const stop = store.contendForHost((isHost) => roles.add(isHost));
  return { roles, stop, becomes: (isHost: boolean) => roles.next((each) => each === isHost) };
}

describe('of the processes on one database', () => {
  it('one hosts, and another takes over when it stops', async () => {
    await using database = await freshDatabase();
    await using first = await openTestStore({ url: database.url });
    await using second = await openTestStore({ url: database.socketUrl });
    const one = host(first);
    await one.roles.first((isHost) => isHost);
    const other = host(second);
    const third = host(second);
    one.stop();
    // The database decides which waiting process is next.
    await Promise.race([other.roles.first(Boolean), third.roles.first(Boolean)]);
    // Processes that ask while it is taken are notified that another one hosts.
    const chosen = ({ roles }: typeof one) => roles.items.filter(Boolean).length;
    const [next, last] = chosen(other) > 0 ? [other, third] : [third, other];
    expect([one, next, last].map(chosen)).toEqual([1, 1, 0]);
    next.stop();
    await last.roles.first(Boolean);
    expect([one, next, last].map(chosen)).toEqual([1, 1, 1]);
    expect(one.roles.items).toEqual([true]);
  });

  it('one hosts, and another takes over when it is closed', async () => {
    await using database = await freshDatabase();
    const first = await openTestStore({ url: database.url });
    await using second = await openTestStore({ url: database.url });
    const one = host(first);
    await one.roles.first(Boolean);
    const other = host(second);
    await first[Symbol.asyncDispose]();
    await other.roles.first(Boolean);
    expect(one.roles.items).toEqual([true]);
  });

  it('another takes over when the host loses its connection and queues again', async () => {
    await using database = await freshDatabase();
    await using proxy = await proxyDatabase(database.url);
    await using first = await openTestStore({ url: proxy.url });
    await using second = await openTestStore({ url: database.url });
    const one = host(first);
    await one.roles.first(Boolean);
    const other = host(second);
    const lost = one.becomes(false);
    proxy.cut();
    await lost;
    await other.roles.first(Boolean);
    proxy.restore();
    await expect.poll(() => first.isConnected).toBe(true);
    other.stop();
    await one.becomes(true);
    expect(one.roles.items).toEqual([true, false, true]);
    expect(other.roles.items).toEqual([true]);
  });

  it('one disconnected by an administrator hosts again if no other does', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const one = host(store);
    await one.roles.first(Boolean);
    const again = one.becomes(true);
    await administer(
      `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database =
        (SELECT oid FROM pg_database WHERE datname = '${database.name}')`,
    );
    await again;
    expect(one.roles.items).toEqual([true, false, true]);
  });

  it('one with a silent connection does not host', async () => {
    await using database = await freshDatabase();
    await using proxy = await proxyDatabase(database.url);
    const roles = new Inbox<boolean>();
    const lock = new HostLock(addressOf(proxy.url), (isHost) => roles.add(isHost), 10);
    lock.start();
    await roles.first(Boolean);
    proxy.freeze();
    await roles.first((isHost) => !isHost);
    proxy.restore();
    await roles.several(2, Boolean);
    expect(roles.items).toEqual([true, false, true]);
    await lock.release();
  });

  it('the host does not block others', async () => {
    await using store = await openTestStore();
    const one = host(store);
    await one.roles.first(Boolean);
    const { project } = (await store.projects.all())[0]!;
    expect(await store.secrets.put(project.id, 'TOKEN', 'sesame')).toEqual({ created: true });
    expect(await store.secrets.rotate()).toMatchObject({ rotated: 1 });
    one.stop();
  });

  it('one that stops while it connects leaves no connection behind, at any time', async () => {
    await using database = await freshDatabase();
    const address = addressOf(database.url);
    for (let turns = 0; turns < 1_500; turns += 10) {
      const lock = new HostLock(address, () => {});
      lock.start();
      for (let turn = 0; turn < turns; turn++) await immediately();
      await lock.release();
    }
    const count = `SELECT count(*)::int AS open FROM pg_stat_activity WHERE datname = '${database.name}'`;
    await using client = await connectTo('postgres');
    await expect.poll(async () => (await client.query(count)).rows).toEqual([{ open: 0 }]);
  });

  it('one that stops before it could host never does', async () => {
    await using database = await freshDatabase();
    await using store = await openTestStore({ url: database.url });
    const one = host(store);
    one.stop();
    const other = host(store);
    await other.roles.first(Boolean);
    expect(one.roles.items).toEqual([]);
  });
});
