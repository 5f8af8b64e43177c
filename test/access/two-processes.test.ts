import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { freshDatabase } from '../helpers/database.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { AccessScene, bearer } from './scene.ts';

/** It takes less than a second on a machine with nothing else to do. */
const BUSY_MS = 10_000;
const CLIENTS = 100;

describe('a change of access in one process on a database', () => {
  it('takes effect in another at once, while a hundred clients call', async () => {
    await using database = await freshDatabase();
    const options = {
      url: database.url,
      env: { SWITCHBOARD_SECRET_KEY: randomBytes(32).toString('base64') },
      servers: { github: { ...fixtureServer('offers-guarded-items'), concurrency: CLIENTS } },
    };
    await using here = await AccessScene.start(options);
    await using there = await AccessScene.start(options);
    const busy = await there.addKey();
    const revoked = await here.newKey();
    await until(async () => (await there.initialize(bearer(revoked.key))).status === 200);
    const sessions = await Promise.all(Array.from({ length: CLIENTS }, () => there.session(busy)));
    let isOver = false;
    let calls = 0;
    const callers = sessions.map(async (session) => {
      while (!isOver) {
        expect((await session.call('list_repos')).error).toBeUndefined();
        calls++;
      }
    });
    await until(async () => calls > 2 * CLIENTS);
    const stream = await (await there.session(revoked.key)).listen();

    const startedAt = performance.now();
    await here.done(`DELETE /keys/${revoked.id}`);
    const acknowledgedMs = performance.now() - startedAt;
    await stream.ended;
    expect((await there.initialize(bearer(revoked.key))).status).toBe(401);
    const effectiveMs = performance.now() - startedAt;
    isOver = true;
    await Promise.all(callers);
    console.log(
      `revoked in ${acknowledgedMs.toFixed(0)} ms here, ${effectiveMs.toFixed(0)} ms there, beside ${calls} calls`,
    );
    expect(effectiveMs - acknowledgedMs).toBeLessThan(BUSY_MS);
  });

  it('by a rotation ends the old key there too', async () => {
    await using database = await freshDatabase();
    const options = {
      url: database.url,
      env: { SWITCHBOARD_SECRET_KEY: randomBytes(32).toString('base64') },
      servers: {},
    };
    await using here = await AccessScene.start(options);
    await using there = await AccessScene.start(options);
    const key = await here.newKey();
    await until(async () => (await there.initialize(bearer(key.key))).status === 200);
    const rotated = await here.done<{ key: string }>(`POST /keys/${key.id}/rotate`, { overlap_ms: 0 });
    await until(async () => (await there.initialize(bearer(rotated.key))).status === 200);
    expect((await there.initialize(bearer(key.key))).status).toBe(401);
  });
});

async function until(isSo: () => Promise<boolean>): Promise<void> {
  await expect.poll(isSo).toBe(true);
}
