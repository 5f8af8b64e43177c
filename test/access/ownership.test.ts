import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { askedBy, comeBack, textIn } from '../eras/asked.ts';
import { ModernPeer } from '../eras/modern-peer.ts';
import { RawModern, tasksExtension } from '../eras/raw-modern.ts';
import { begin, taskServer } from '../eras/task-peer.ts';
import { freshDatabase } from '../helpers/database.ts';
import { EventStream, exchange, openExchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { AccessScene, bearer } from './scene.ts';

/** What one principal has does not exist for another, with any right. */
describe('what belongs to one principal', () => {
  let scene: AccessScene;
  let mine: string;
  let theirs: string;

  setUp(async (use) => {
    const peer = use(await ModernPeer.start({ digger: taskServer('digger', 'dig') }));
    scene = use(
      await AccessScene.start({
        servers: {
          github: fixtureServer('offers-guarded-items'),
          tasks: fixtureServer('runs-tasks'),
          asker: fixtureServer('eras/asks-client'),
          own: { ...fixtureServer('toolbox'), isolation: 'session' },
          ...peer.configuration(),
        },
      }),
    );
  });
  beforeAll(async () => {
    mine = await scene.addKey();
    theirs = await scene.addKey({ role: 'admin', project: undefined });
  });

  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

  it('a session is unknown to others, exactly like one that never existed, and goes on', async () => {
    const session = await scene.session(mine);
    const never = '00000000-0000-4000-8000-000000000000';
    for (const method of ['POST', 'GET', 'DELETE']) {
      const [taken, missing] = await Promise.all(
        [session.id, never].map((id) =>
          exchange(scene.url, {
            method,
            headers: {
              ...session.headers(),
              ...bearer(theirs),
              'mcp-session-id': id,
              ...(method === 'GET' ? { accept: 'text/event-stream' } : {}),
            },
            ...(method === 'POST' ? { body: ping } : {}),
          }),
        ),
      );
      expect([taken!.status, taken!.text], method).toEqual([404, missing!.text]);
    }
    expect((await session.post(ping)).status).toBe(200);
    await scene.audited('outcome=denied', ({ subject }) => subject === 'session of another');
  });

  it('the local user is another principal too', async () => {
    const session = await scene.session(mine);
    const local = await scene.localHeaders();
    expect((await session.post(ping, local)).status).toBe(404);
  });

  it('events of a session cannot be resumed by others', async () => {
    const session = await scene.session(mine);
    const stream = await session.listen();
    await scene.done('PATCH /projects/default/tools/create_issue', { enabled: false });
    await stream.message(({ method }) => method === 'notifications/tools/list_changed');
    await scene.done('PATCH /projects/default/tools/create_issue', { enabled: true });
    const answer = await exchange(scene.url, {
      method: 'GET',
      headers: {
        ...session.headers({ accept: 'text/event-stream', 'last-event-id': stream.lastEventId }),
        ...bearer(theirs),
      },
    });
    expect(answer.status).toBe(404);
    await stream.cut();
  });

  it('a stream of 2024-11-05 takes no messages of others', async () => {
    const { baseUrl } = scene.switchboard;
    const stream = new EventStream(
      await openExchange(`${baseUrl}/sse`, { method: 'GET', headers: bearer(mine) }),
    );
    const { data = '' } = await stream.events.first(({ event }) => event === 'endpoint');
    const send = (key: string) =>
      exchange(baseUrl + data, {
        headers: { ...bearer(key), 'content-type': 'application/json' },
        body: {
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: {
            protocolVersion: '2024-11-05',
            capabilities: {},
            clientInfo: { name: 'x', version: '1' },
          },
        },
      });
    expect((await send(theirs)).status).toBe(404);
    expect((await send(mine)).status).toBe(202);
    await stream.message(({ id }) => id === 1);
    await stream.cut();
  });

  it('a legacy task is unknown to others', async () => {
    const [session, other] = [await scene.session(mine), await scene.session(theirs)];
    const params = { name: 'research', arguments: { topic: 'owls' }, task: {} };
    const { result } = await session.request('tools/call', params);
    const { taskId } = result!.task as { taskId: string };
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
      const { error } = await other.request(method, { taskId });
      expect(error?.message, method).toBe(`Unknown task: ${taskId}`);
    }
    expect((await session.request('tasks/get', { taskId })).result?.status).toBe('working');
    await scene.audited('outcome=denied', ({ subject }) => subject === 'task that it has not begun');
  });

  it('X-Switchboard-Session names another client for each principal', async () => {
    const named = { 'x-switchboard-session': 'laptop' };
    const [one, other] = [mine, theirs].map((key) =>
      scene.modern(key).as({ headers: { ...bearer(key), ...named } }),
    );
    const first = await one!.callText('pid');
    expect(await one!.callText('pid')).toBe(first);
    expect(await other!.callText('pid')).not.toBe(first);
    // The end of the other's client leaves this one as it is.
    const end = (key: string) =>
      exchange(scene.url, { method: 'DELETE', headers: { ...bearer(key), ...named } });
    expect((await end(theirs)).status).toBe(200);
    expect((await end(theirs)).status).toBe(404);
    expect(await one!.callText('pid')).toBe(first);
  });

  it('a modern task is unknown to others, the local user included', async () => {
    const capabilities = { extensions: { [tasksExtension]: {} } };
    const client = scene.modern(mine).as({ capabilities });
    const taskId = await begin(client, 'dig');
    const { authorization } = await scene.localHeaders();
    const others = [scene.modern(theirs), new RawModern(scene.url, { headers: { authorization } })];
    for (const other of others) {
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
        const { error } = await other.as({ capabilities }).request(method, { taskId });
        expect(error, method).toMatchObject({ code: -32602, message: `Unknown task: ${taskId}` });
      }
    }
    // Without the signature it is what a Switchboard without authentication would issue.
    const unsigned = taskId.split('.').slice(0, 2).join('.');
    const { error } = await client.request('tasks/get', { taskId: unsigned });
    expect(error?.message).toBe(`Unknown task: ${unsigned}`);
    expect((await client.request('tasks/get', { taskId })).result?.status).toBe('working');
  });

  it('a call that waits for input goes on for its principal only', async () => {
    const capabilities = { elicitation: {} };
    const [client, other] = [mine, theirs].map((key) => scene.modern(key).as({ capabilities }));
    const asked = askedBy(await client!.call('ask', { key: 'one' }));
    const { error } = await other!.call('ask', { key: 'one' }, comeBack(asked));
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('another client') });
    expect(textIn(await client!.call('ask', { key: 'one' }, comeBack(asked)))).toContain('Ada');
  });

  it('a session of before a restart is still bound to its principal', async () => {
    await using stored = await freshDatabase();
    const secret = { SWITCHBOARD_SECRET_KEY: randomBytes(32).toString('base64') };
    const before = await AccessScene.start({ url: stored.url, env: secret });
    const { key } = await before.newKey();
    const { key: other } = await before.newKey();
    const session = await before.session(key);
    await session.call('list_repos');
    await before[Symbol.asyncDispose]();
    await using after = await AccessScene.start({ url: stored.url, env: secret });
    const resume = (own: string) =>
      exchange(after.url, { headers: { ...session.headers(), ...bearer(own) }, body: ping });
    expect((await resume(other)).status).toBe(404);
    // The attempt has not ended it.
    expect((await resume(key)).status).toBe(200);
  });
});
