import { readdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { postgresIn } from '../helpers/postgres.ts';
import { isAlive } from '../helpers/processes.ts';
import { openTestStore, temporaryHome } from '../helpers/store.ts';
import { startStoreOwner } from '../helpers/store-owner.ts';

async function namesIn(store: Awaited<ReturnType<typeof openTestStore>>): Promise<string[]> {
  return (await store.projects.all()).map(({ project }) => project.name);
}

describe('an embedded PostgreSQL', () => {
  it('is created at the first start, keeps its data, and stops with Switchboard', async () => {
    await using home = await temporaryHome();
    const first = await openTestStore({ home: home.path });
    expect(first.told).toEqual([`progress: creating the database in ${home.path}/postgres`]);
    await first.projects.create({ name: 'kept' });
    const pid = postgresIn(home.path)!;
    expect(isAlive(pid)).toBe(true);
    await first.close();
    expect(isAlive(pid)).toBe(false);
    expect(await readdir(home.path)).toEqual(['postgres', 'postgres.log', 'postgres.password']);

    await using second = await openTestStore({ home: home.path });
    expect(second.told).toEqual([]);
    expect(await namesIn(second)).toEqual(['default', 'kept']);
  });

  it('is adopted from a Switchboard that was killed', async () => {
    await using home = await temporaryHome();
    await using owner = await startStoreOwner(home.path);
    const pid = postgresIn(home.path)!;
    await owner.kill();
    expect(isAlive(pid)).toBe(true);
    const store = await openTestStore({ home: home.path });
    expect(postgresIn(home.path)).toBe(pid);
    await store.projects.create({ name: 'after' });
    await store.close();
    expect(postgresIn(home.path)).toBe(undefined);
  });

  it('restarts when it is killed', async () => {
    await using store = await openTestStore();
    const pid = postgresIn(store.home)!;
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => store.told).toContain('connected');
    expect(store.told).toContainEqual(expect.stringMatching(/^warned: .*started again/));
    expect(store.told).toContainEqual(expect.stringMatching(/^lost: /));
    expect(postgresIn(store.home)).not.toBe(pid);
    await store.projects.create({ name: 'after' });
  });
});
