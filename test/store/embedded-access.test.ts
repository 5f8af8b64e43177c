import { chmod, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { ownLogin, postgresIn } from '../helpers/postgres.ts';
import { openTestStore, temporaryHome } from '../helpers/store.ts';
import { startStoreOwner } from '../helpers/store-owner.ts';

async function connect(home: string, who: { user: string; password?: string }) {
  const client = new pg.Client({ host: join(home, 'postgres'), database: 'postgres', ...who });
  client.on('error', () => {});
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/** Recreates the insecure set-up of older versions: a superuser without password who owns everything. */
async function makeOld(home: string): Promise<void> {
  const pid = postgresIn(home)!;
  await writeFile(join(home, 'postgres', 'pg_hba.conf'), 'local all all trust\n');
  process.kill(pid, 'SIGHUP');
  await using client = await untilOpen(home);
  await client.query(
    'REASSIGN OWNED BY switchboard_app TO switchboard; DROP OWNED BY switchboard_app; DROP ROLE switchboard_app',
  );
  await rm(join(home, 'postgres.password'));
}

async function untilOpen(home: string): ReturnType<typeof connect> {
  for (;;) {
    const client = await connect(home, { user: 'switchboard' }).catch(() => undefined);
    if (client !== undefined) return client;
  }
}

async function expectClosed(home: string): Promise<void> {
  for (const who of [{ user: 'switchboard' }, { user: 'postgres' }, { user: 'switchboard', password: 'x' }]) {
    await expect(connect(home, who)).rejects.toMatchObject({ code: '28000' });
  }
  await expect(connect(home, { user: 'switchboard_app', password: 'x' })).rejects.toMatchObject({
    code: '28P01',
  });
  await using own = await connect(home, ownLogin(home));
  const { rows } = await own.query(
    `SELECT rolsuper, rolcreaterole, pg_get_userbyid(nspowner) AS owner FROM pg_roles, pg_namespace WHERE rolname = current_user AND nspname = 'kb'`,
  );
  expect(rows).toEqual([{ rolsuper: false, rolcreaterole: false, owner: 'switchboard_app' }]);
  const { rows: foreign } = await own.query(
    `SELECT relname FROM pg_class WHERE relnamespace = 'kb'::regnamespace AND relkind IN ('r', 'S') AND relowner <> current_user::regrole
     UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'kb'::regnamespace AND proowner <> current_user::regrole`,
  );
  expect(foreign).toEqual([]);
  expect((await stat(join(home, 'postgres.password'))).mode & 0o777).toBe(0o600);
}

describe('an embedded PostgreSQL admits only Switchboard', () => {
  it('as a role that is no superuser', async () => {
    await using store = await openTestStore();
    await expectClosed(store.home);
  });

  it('after an upgrade from an insecure version, with all its data', async () => {
    await using home = await temporaryHome();
    const before = await openTestStore({ home: home.path });
    await before.projects.create({ name: 'kept' });
    await makeOld(home.path);
    await before.close();
    await using store = await openTestStore({ home: home.path });
    await expectClosed(home.path);
    expect((await store.projects.all()).map(({ project }) => project.name)).toEqual(['default', 'kept']);
    // Triggers, notifications and writes still work.
    const changed = Promise.withResolvers<string | undefined>();
    store.subscribe((id) => changed.resolve(id));
    const { id } = await store.projects.create({ name: 'new' });
    expect(await changed.promise).toBe(id);
  });

  it('after an insecure version was killed and left it running, and disconnects all others', async () => {
    await using home = await temporaryHome();
    await using owner = await startStoreOwner(home.path);
    await makeOld(home.path);
    const pid = postgresIn(home.path)!;
    await using intruder = await connect(home.path, { user: 'switchboard' });
    const isOut = new Promise((resolve) => intruder.once('end', resolve));
    process.kill(owner.pid, 'SIGKILL');
    await using store = await openTestStore({ home: home.path });
    expect(postgresIn(home.path)).toBe(pid);
    await isOut;
    await expectClosed(store.home);
  });

  it('after its access rules were lost or its password was readable by others, with a warning', async () => {
    await using home = await temporaryHome();
    const before = await openTestStore({ home: home.path });
    await before.close();
    const password = join(home.path, 'postgres.password');
    await rm(join(home.path, 'postgres', 'pg_hba.conf'));
    await chmod(password, 0o644);
    await using store = await openTestStore({ home: home.path });
    await expectClosed(home.path);
    expect(store.told).toEqual([
      `warned: ${password} could be read by other users; now it cannot. Remove it and restart for a new password of the database.`,
    ]);
  });

  it.each(['lost', 'emptied'])('after its password was %s', async (how) => {
    await using home = await temporaryHome();
    const before = await openTestStore({ home: home.path });
    await before.projects.create({ name: 'kept' });
    await before.close();
    const password = join(home.path, 'postgres.password');
    await (how === 'lost' ? rm(password) : writeFile(password, ''));
    await using store = await openTestStore({ home: home.path });
    await expectClosed(home.path);
    expect(await store.projects.all()).toHaveLength(2);
  });
});
