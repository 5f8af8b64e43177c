import { afterEach, describe, expect, it } from 'vitest';
import type { StatusView } from '../../src/api/views.ts';
import { calls, says } from '../agent/messages-api.ts';
import { freshDatabase, type TestDatabase } from '../helpers/database.ts';
import { proxyDatabase } from '../helpers/database-proxy.ts';
import { setUp } from '../helpers/set-up.ts';
import { ChatSite, eventOf } from './scene.ts';

describe('a chat while the database is unreachable', () => {
  let database: TestDatabase;
  let proxy: Awaited<ReturnType<typeof proxyDatabase>>;
  let scene: ChatSite;

  setUp(async (use) => {
    database = use(await freshDatabase());
    proxy = use(await proxyDatabase(database.url));
    scene = use(await ChatSite.start(proxy.url));
  });

  /** The API has no event for this, so it polls. */
  async function connectedIs(wanted: boolean): Promise<void> {
    for (;;) {
      const { database: now } = await scene.site.done<StatusView>('GET /status');
      if (now.connected === wanted) return;
    }
  }
  async function loseDatabase(): Promise<void> {
    proxy.cut();
    await connectedIs(false);
  }
  async function restoreDatabase(): Promise<void> {
    proxy.restore();
    await connectedIs(true);
  }
  afterEach(restoreDatabase);

  it('is rejected', async () => {
    const talk = await scene.project([says('Hello.')]);
    await loseDatabase();
    const { status, body } = await talk.refused('Hello?');
    expect([status, body.error]).toMatchObject([503, { code: 'database_unavailable' }]);
    expect(talk.requests).toEqual([]);
  });

  it('is recorded completely if the database is back before the end', async () => {
    const talk = await scene.project([
      calls({ name: 'echo', input: { text: 'before' } }),
      calls({ name: 'wait' }),
      calls({ name: 'wait', input: { order: 'on' } }),
      says('Done.'),
    ]);
    const who = talk.project.who('box');
    const stream = await talk.stream('Go!');
    await scene.site.witness.sees(who, 'waiting');
    await loseDatabase();
    scene.site.witness.tell(who, 'go');
    // The steps in between cannot be written yet.
    await scene.site.witness.severalOf(who, 'waiting', 2);
    await restoreDatabase();
    scene.site.witness.tell(who, 'on');
    const done = await eventOf(stream, 'done');
    const run = await talk.run(String(done.run_id));
    expect(run).toMatchObject({ status: 'completed', output: 'Done.', steps: 4 });
    expect(run.messages).toHaveLength(8);
    expect(run.tool_calls.map(({ tool, step, status }) => [tool, step, status])).toEqual([
      ['echo', 1, 'ok'],
      ['wait', 2, 'ok'],
      ['wait', 3, 'ok'],
    ]);
  });

  it('fails if it cannot be recorded', async () => {
    const talk = await scene.project([calls({ name: 'wait' }), says('Done.')]);
    const who = talk.project.who('box');
    const stream = await talk.stream('Go!');
    await scene.site.witness.sees(who, 'waiting');
    await loseDatabase();
    scene.site.witness.tell(who, 'go');
    const { error } = (await eventOf(stream, 'error')) as { error: object };
    expect(error).toMatchObject({ code: 'database_unavailable' });
  });
});
