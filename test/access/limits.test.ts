import { describe, expect, it } from 'vitest';
import { exchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { AccessScene, bearer } from './scene.ts';

describe('a limit', () => {
  let scene: AccessScene;
  setUp(async (use) => {
    scene = use(await AccessScene.start({ settings: { maxSessionsPerPrincipal: 3 } }));
  });

  const limited = async (limit: object) => {
    const key = await scene.newKey({ role: 'owner' });
    await scene.done('POST /limits', { principal: key.id, ...limit });
    return key;
  };
  const tooMany = { data: { code: 'too_many_requests', retryAfterMs: expect.any(Number) } };

  it('of requests per minute says how long to wait, in MCP and in HTTP', async () => {
    const { key } = await limited({ per_minute: 5 });
    const session = await scene.session(key);
    const answers = [];
    for (let count = 0; count < 8; count++) answers.push(await session.call('list_repos'));
    expect(answers.filter(({ error }) => error !== undefined).length).toBeGreaterThan(2);
    expect(answers.at(-1)!.error).toMatchObject(tooMany);
    expect(answers.at(-1)!.error!.message).toMatch(
      /^The limit of 5 requests per minute is reached: try again in \d+ seconds?\.$/,
    );
    const modern = await scene.modern(key).send('tools/list');
    expect([modern.status, Number(modern.headers['retry-after'])]).toEqual([429, expect.any(Number)]);
    expect(modern.message?.error).toMatchObject(tooMany);
    const opened = await scene.initialize(bearer(key));
    expect([opened.status, opened.headers['retry-after']]).toEqual([429, expect.stringMatching(/^\d+$/)]);
    const api = await scene.ask('GET /projects', undefined, key);
    expect([api.status, api.headers['retry-after']]).toEqual([429, expect.stringMatching(/^\d+$/)]);
    // Others are not limited.
    expect((await scene.initialize(bearer(await scene.addKey()))).status).toBe(200);
  });

  it('of concurrent calls counts only those in flight', async () => {
    const { key } = await limited({ concurrent: 1 });
    const session = await scene.session(key);
    const sees = () =>
      scene.witness.sees(
        'github',
        'message',
        ({ method, params }) =>
          method === 'tools/call' && (params as { name?: string } | undefined)?.name === 'wait',
      );
    const waiting = session.post({
      jsonrpc: '2.0',
      id: 'first',
      method: 'tools/call',
      params: { name: 'wait' },
    });
    await sees();
    expect((await session.call('list_repos')).error).toMatchObject(tooMany);
    await session.notify('notifications/cancelled', { requestId: 'first' });
    await waiting;
    expect((await session.call('list_repos')).error).toBeUndefined();
  });

  it('of a tool leaves the others alone', async () => {
    const { key } = await limited({ project: 'default', server: 'github', tool: 'list_*', per_minute: 1 });
    const session = await scene.session(key);
    expect((await session.call('list_repos')).error).toBeUndefined();
    expect((await session.call('list_repos')).error).toMatchObject(tooMany);
    expect((await session.call('create_issue')).error).toBeUndefined();
  });

  it('can be shared by all principals', async () => {
    await scene.addProject('shared');
    const { id } = await scene.done<{ id: string }>('POST /limits', {
      project: 'shared',
      tool: '*',
      per_minute: 1,
      shared: true,
    });
    const [one, other] = await Promise.all(
      [1, 2].map(async () => scene.session(await scene.addKey({ project: 'shared' }), '/mcp/shared')),
    );
    const answers = [await one!.call('list_repos'), await other!.call('list_repos')];
    expect(answers.filter(({ error }) => error !== undefined).length).toBeGreaterThan(0);
    await scene.done(`DELETE /limits/${id}`);
    for (const session of [one!, other!]) expect((await session.call('list_repos')).error).toBeUndefined();
  });

  it('of sessions ends the oldest idle one, of the same principal only', async () => {
    const [mine, theirs] = [await scene.addKey(), await scene.addKey()];
    const other = await scene.session(theirs);
    const first = await scene.session(mine);
    const streams = [];
    for (let count = 0; count < 3; count++) {
      const session = await scene.session(mine);
      streams.push(await session.listen());
    }
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    expect((await first.post(ping)).status).toBe(404);
    expect((await other.post(ping)).status).toBe(200);
    // All three are in use.
    const refused = await scene.initialize(bearer(mine));
    expect([refused.status, refused.json?.error?.data?.code]).toEqual([503, 'too_many_sessions']);
    for (const stream of streams) await stream.cut();
  });

  it('names what is wrong with it', async () => {
    const answer = await scene.ask('POST /limits', { principal: 'nobody', per_minute: 1 });
    expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('nobody')]);
    expect((await exchange(`${scene.switchboard.baseUrl}/api/v1/limits`, { method: 'GET' })).status).toBe(
      401,
    );
  });
});
