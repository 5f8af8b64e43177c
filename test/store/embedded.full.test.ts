import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { endPostgresIn, postgresIn } from '../helpers/postgres.ts';
import { isAlive } from '../helpers/processes.ts';
import { openTestStore, temporaryHome } from '../helpers/store.ts';
import { startStoreOwner } from '../helpers/store-owner.ts';

async function namesIn(store: Awaited<ReturnType<typeof openTestStore>>): Promise<string[]> {
  return (await store.projects.all()).map(({ project }) => project.name);
}

describe('an embedded PostgreSQL', () => {
  it('is private to its owner, off the network, and shielded from terminal signals', async () => {
    await using store = await openTestStore();
    const pid = postgresIn(store.home)!;
    const folder = join(store.home, 'postgres');
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
    expect(words).toContain('listen_addresses=');
    expect(await readFile(join(folder, 'pg_hba.conf'), 'utf8')).not.toMatch(/^host.*trust/m);
    const ofPid = (which: number) =>
      spawnSync('ps', ['-o', 'pgid=', '-p', String(which)], { encoding: 'utf8' }).stdout.trim();
    expect(ofPid(pid)).not.toBe(ofPid(process.pid));
    expect(words.filter((word) => word.includes('fsync'))).toEqual([]);
  });

  it('works in a folder with an unusual name', async () => {
    await using home = await temporaryHome();
    const path = join(home.path, `a "home", it's ü`);
    const store = await openTestStore({ home: path });
    expect(await namesIn(store)).toEqual(['default']);
    await store.close();
    expect(postgresIn(path)).toBe(undefined);
  });

  it('rejects a second Switchboard, and names the first', async () => {
    await using home = await temporaryHome();
    await using owner = await startStoreOwner(home.path);
    expect(owner.said).toBe('open');
    await expect(openTestStore({ home: home.path })).rejects.toMatchObject({
      code: 'invalid_config',
      message: `Another Switchboard (process ${owner.pid}) runs with the database in ${home.path}/postgres. Stop it, or give this one a SWITCHBOARD_HOME of its own; to share a database, set DATABASE_URL for both; to do without, run with --no-database.`,
    });
    expect(isAlive(postgresIn(home.path)!)).toBe(true);
    await owner.stop();
    expect(postgresIn(home.path)).toBe(undefined);
    await using store = await openTestStore({ home: home.path });
    expect(await namesIn(store)).toEqual(['default']);
  });

  it('is opened by only one of several concurrent starts', async () => {
    await using home = await temporaryHome();
    const owners = await Promise.all([1, 2, 3, 4].map(() => startStoreOwner(home.path)));
    expect(owners.filter(({ said }) => said === 'open')).toHaveLength(1);
    for (const { said } of owners) expect(said).toMatch(/^open$|^Another Switchboard \(process \d+\) runs/);
    expect(await readdir(home.path)).toEqual(['postgres', 'postgres.log', 'postgres.password']);
    await Promise.all(owners.map((owner) => owner.stop()));
    expect(postgresIn(home.path)).toBe(undefined);
  });

  it('is adopted by only one of several concurrent starts', async () => {
    await using home = await temporaryHome();
    await (await startStoreOwner(home.path)).kill();
    const owners = await Promise.all([1, 2, 3].map(() => startStoreOwner(home.path)));
    expect(owners.filter(({ said }) => said === 'open')).toHaveLength(1);
    await Promise.all(owners.map((owner) => owner.stop()));
    expect(postgresIn(home.path)).toBe(undefined);
  });

  it('keeps every acknowledged write after both were killed', async () => {
    await using home = await temporaryHome();
    const store = await openTestStore({ home: home.path });
    await store.projects.create({ name: 'acknowledged' });
    await store.close();
    await using owner = await startStoreOwner(home.path);
    const pid = postgresIn(home.path)!;
    await owner.kill();
    process.kill(pid, 'SIGKILL');
    await using after = await openTestStore({ home: home.path });
    expect(await namesIn(after)).toEqual(['default', 'acknowledged']);
  });

  it('starts after a crash even if another process has its pid', async () => {
    await using home = await temporaryHome();
    await (await openTestStore({ home: home.path })).close();
    const folder = join(home.path, 'postgres');
    for (const name of ['postmaster.pid', '.s.PGSQL.5432.lock']) {
      await writeFile(join(folder, name), `${process.pid}\n${folder}\n1700000000\n5432\n${folder}\n`);
    }
    await using store = await openTestStore({ home: home.path });
    expect(await namesIn(store)).toEqual(['default']);
  });

  it('stops at once when there is no time', async () => {
    await using home = await temporaryHome();
    const killing = new AbortController();
    const store = await openTestStore({ home: home.path, killSignal: killing.signal });
    await store.projects.create({ name: 'acknowledged' });
    const pid = postgresIn(home.path)!;
    killing.abort();
    await expect.poll(() => isAlive(pid)).toBe(false);
    await store.close();
    await using after = await openTestStore({ home: home.path });
    expect(await namesIn(after)).toEqual(['default', 'acknowledged']);
  });

  it('leaves nothing behind when a start is aborted', async () => {
    await using home = await temporaryHome();
    for (const afterMs of [0, 50, 300, 900]) {
      const aborting = new AbortController();
      const opening = openTestStore({ home: home.path, signal: aborting.signal });
      setTimeout(() => aborting.abort(), afterMs);
      await opening.then(
        (store) => store.close(),
        () => {},
      );
      expect(postgresIn(home.path)).toBe(undefined);
      expect((await readdir(home.path)).filter((name) => name.includes('.new-'))).toEqual([]);
    }
  });

  it('removes the remains of a creation that was killed', async () => {
    await using home = await temporaryHome();
    await mkdir(join(home.path, 'postgres.new-999999999-x'));
    await using store = await openTestStore({ home: home.path });
    expect(await readdir(home.path)).toEqual(['postgres', 'postgres.log', 'postgres.password']);
    expect(await namesIn(store)).toEqual(['default']);
  });
});

describe('an embedded PostgreSQL does not start', () => {
  it('if the path of its socket is too long', async () => {
    await using home = await temporaryHome();
    await expect(openTestStore({ home: join(home.path, 'x'.repeat(80)) })).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('Set SWITCHBOARD_HOME to a shorter one'),
    });
  });

  it('with data of another version', async () => {
    await using home = await temporaryHome();
    await mkdir(join(home.path, 'postgres'));
    await writeFile(join(home.path, 'postgres', 'PG_VERSION'), '13\n');
    await expect(openTestStore({ home: home.path })).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('is of PostgreSQL 13, and this Switchboard brings 18'),
    });
  });

  it('in a folder with other files', async () => {
    await using home = await temporaryHome();
    await mkdir(join(home.path, 'postgres'));
    await writeFile(join(home.path, 'postgres', 'thesis.tex'), '');
    await expect(openTestStore({ home: home.path })).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('there are other files in that folder'),
    });
    expect(await readdir(home.path)).toEqual(['postgres']);
  });

  it('with damaged data, and reports PostgreSQL’s error', async () => {
    await using home = await temporaryHome();
    await (await openTestStore({ home: home.path })).close();
    const folder = join(home.path, 'postgres');
    await rename(join(folder, 'global', 'pg_control'), join(folder, 'lost'));
    await expect(openTestStore({ home: home.path })).rejects.toMatchObject({
      code: 'database_unavailable',
      message: expect.stringMatching(/cannot be started in .*pg_control.*\nIts log is .*postgres\.log\./s),
    });
    await endPostgresIn(home.path);
  });
});
