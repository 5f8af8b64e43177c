import { chmodSync, chownSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { passwordFor } from '../../src/store/embedded/access.ts';
import { findAccount } from '../../src/store/embedded/account.ts';
import { startEmbedded } from '../../src/store/embedded.ts';
import { postgresIn } from '../helpers/postgres.ts';
import { temporaryHome } from '../helpers/store.ts';

const isRoot = process.getuid?.() === 0;
const events = { progress() {}, warned() {}, connectionChanged() {} };

async function start(home: string, unshareWorks: boolean) {
  const postgres = await startEmbedded({ home, events }, (...where: Parameters<typeof findAccount>) =>
    findAccount(where[0], where[1], where[2], { isRoot, unshareWorks: () => unshareWorks }),
  );
  const client = new pg.Client(postgres.address.config);
  await client.connect();
  const { rows } = await client.query('SELECT 1 AS one');
  expect(rows).toEqual([{ one: 1 }]);
  await client.end();
  const { uid } = statSync(`/proc/${postgresIn(home)}`);
  await postgres.stop();
  expect(postgresIn(home)).toBe(undefined);
  return { uid };
}

describe.runIf(isRoot)('PostgreSQL started by root', () => {
  it('runs in a user namespace, and its files belong to root', async (test) => {
    await using home = await temporaryHome();
    const outcome = await start(home.path, true).catch((error: Error) => error);
    if (outcome instanceof Error && /unshare/.test(outcome.message)) test.skip('unshare does not work here');
    expect(outcome).toEqual({ uid: 0 });
    expect(statSync(join(home.path, 'postgres', 'PG_VERSION')).uid).toBe(0);
  });

  it('runs as the user nobody if that fails, and keeps doing so', async () => {
    await using home = await temporaryHome();
    chmodSync(home.path, 0o711);
    const { uid } = await start(home.path, false);
    expect(uid).not.toBe(0);
    expect(statSync(join(home.path, 'postgres', 'PG_VERSION')).uid).toBe(uid);
    expect(await start(home.path, true)).toEqual({ uid });
  });

  it('takes over files that belonged to root', async () => {
    await using home = await temporaryHome();
    chmodSync(home.path, 0o711);
    await start(home.path, true);
    const { uid } = await start(home.path, false);
    expect(uid).not.toBe(0);
  });

  it('rejects a password file of another user, unless the database belongs to that user', async () => {
    await using home = await temporaryHome();
    const [data, path] = [join(home.path, 'postgres'), join(home.path, 'postgres.password')];
    const password = passwordFor(data, () => {});
    chownSync(path, 65_534, 65_534);
    expect(() => passwordFor(data, () => {})).toThrow(
      `${path} belongs to another user (65534), who knows what is in it. Remove it and restart for a new password`,
    );
    mkdirSync(data);
    expect(() => passwordFor(data, () => {})).toThrow('belongs to another user');
    chownSync(data, 65_534, 65_534);
    expect(passwordFor(data, () => {})).toBe(password);
  });

  it('does not start if the user nobody cannot reach its home', async () => {
    await using home = await temporaryHome();
    await expect(start(home.path, false)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(
        /the user nobody cannot reach .*Run Switchboard as another user, set SWITCHBOARD_HOME/,
      ),
    });
  });
});
