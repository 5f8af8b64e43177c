import { describe, expect, it } from 'vitest';
import { HttpBackend } from '../helpers/http-backend.ts';
import { HttpPeer, openEvents, sessionGiver, writeEvent } from '../helpers/http-peer.ts';
import { HttpProxy } from '../helpers/http-proxy.ts';
import { Inbox } from '../helpers/inbox.ts';
import { setUp } from '../helpers/set-up.ts';
import { startEverything } from '../helpers/switchboard.ts';
import { Scene } from './scene.ts';

const texts = Array.from({ length: 30 }, (_, index) => `text ${index}`);

describe.each([
  ['http', 404, 'json'],
  ['http', 404, 'events'],
  ['http', 400, 'json'],
  ['sse', 404, undefined],
] as const)('a server over %s that drops its sessions (%i, answers: %s)', (transport, status, answers) => {
  let backend: HttpBackend;
  let scene: Scene;
  const begun = new Inbox<unknown>();
  let release = () => {};
  // Lost sessions and restarts are counted, so each test starts a new Switchboard.
  const startScene = () => Scene.start({ forgetful: { type: transport, url: backend.url } });

  setUp(async (use) => {
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    backend = use(
      await HttpBackend.start('forgetful', {
        transport,
        unknownSession: status,
        ...(answers === undefined ? {} : { answers }),
        tools: {
          hold: async ({ text }) => {
            begun.add(text);
            await released;
            return { content: [{ type: 'text', text: `held ${text}` }] };
          },
        },
      }),
    );
    scene = use(await startScene());
  });

  it('still executes the next call, exactly once', async () => {
    await scene.beside(async () => {
      backend.forgetSessions();
      const answer = await scene.echoOf('forgetful__echo', { text: 'once' });
      expect(answer).toMatchObject({ text: 'once', name: 'forgetful' });
    });
    expect(backend.executionsOf('once')).toBe(1);
    expect((await scene.log('forgetful')).join('\n')).toMatch(/lost our session|HTTP 404/);
  });

  it('executes simultaneous calls, each exactly once', async () => {
    await using fresh = await startScene();
    await fresh.beside(async () => {
      backend.forgetSessions();
      const results = await Promise.all(texts.map((text) => fresh.echoOf('forgetful__echo', { text })));
      expect(results.map(({ text }) => text)).toEqual(texts);
    });
    for (const text of texts) expect(backend.executionsOf(text)).toBe(1);
    expect(await fresh.view('forgetful')).toMatchObject({ state: 'ready', restarts: 1, in_flight: 0 });
  });

  it('still responds to calls in flight', async () => {
    await using fresh = await startScene();
    const held = fresh.session.callText('forgetful__hold', { text: 'under way' });
    await begun.first((text) => text === 'under way');
    backend.forgetSessions();
    expect(await fresh.echoOf('forgetful__echo', { text: 'beside it' })).toMatchObject({ text: 'beside it' });
    release();
    expect(await held).toBe('held under way');
    expect(backend.executionsOf('under way')).toBe(1);
  });
});

it('a server that drops every session at once causes one error, and is not retried endlessly', async () => {
  let isForgetful = false;
  const sessions = sessionGiver();
  await using peer = await HttpPeer.start({
    amnesiac: (exchange) => {
      if (sessions.gives(exchange)) return true;
      if (!isForgetful || exchange.method === 'GET') return false;
      exchange.response.writeHead(404).end();
      return true;
    },
  });
  await using scene = await Scene.start(peer.configuration());
  expect(await scene.session.callText('amnesiac__greet')).toBe('hello');
  expect(sessions.count).toBe(1);

  isForgetful = true;
  const error = await scene.beside(() => scene.errorOf('amnesiac__greet'));
  expect(error).toMatchObject({
    code: -32603,
    message: expect.stringMatching(/^Server "amnesiac".*lost our session/),
    data: { code: 'server_unavailable', server: 'amnesiac' },
  });
  // The dropped session, and three more: then it must wait.
  const { next_try } = await scene.reaches('amnesiac', 'backing_off', 4);
  expect(sessions.count).toBe(4);
  expect(await scene.errorOf('amnesiac__greet')).toMatchObject({
    message: expect.stringMatching(/ \(backing off, next try in \d+ s\)$/),
    data: { nextTry: next_try },
  });
  expect(sessions.count).toBe(4);
  expect(await scene.session.toolNames()).toContain('amnesiac__greet');
});

it('a session that is dropped repeatedly within seconds fails no call', async () => {
  await using backend = await HttpBackend.start('forgetful');
  await using scene = await Scene.start({ forgetful: { url: backend.url } });
  for (const text of ['first', 'second', 'third']) {
    backend.forgetSessions();
    expect(await scene.echoOf('forgetful__echo', { text })).toMatchObject({ text });
    expect(backend.executionsOf(text)).toBe(1);
  }
  expect(await scene.view('forgetful')).toMatchObject({ state: 'ready', restarts: 3 });
});

it('a call whose stream is lost is not repeated if its session was dropped meanwhile', async () => {
  const sessions = sessionGiver();
  let executions = 0;
  await using peer = await HttpPeer.start({
    losing: (exchange) => {
      const { method, message, headers, response } = exchange;
      if (method === 'GET' && headers['last-event-id'] !== undefined) {
        response.writeHead(404).end('no such session');
      } else if (message?.method === 'tools/call' && ++executions === 1) {
        openEvents(response);
        writeEvent(response, { id: 'begun', retry: '10' });
        response.end();
      } else {
        return sessions.gives(exchange);
      }
      return true;
    },
  });
  await using scene = await Scene.start(peer.configuration());
  const error = await scene.beside(() => scene.errorOf('losing__greet'));
  expect(error).toMatchObject({
    message: expect.stringMatching(
      /^Server "losing": .*lost our session.*the call may have been executed, and is not sent again/,
    ),
    data: { code: 'server_unavailable', server: 'losing' },
  });
  expect(executions).toBe(1);
  expect(await scene.session.callText('losing__greet')).toBe('hello');
  expect([executions, sessions.count]).toEqual([2, 2]);
});

it('a reference server that is replaced by another instance loses no call', async () => {
  await using before = await startEverything('streamableHttp');
  await using after = await startEverything('streamableHttp');
  await using balancer = await HttpProxy.start(before.url);
  await using scene = await Scene.start({ everything: { url: balancer.url } });
  const echo = () => scene.session.callText('everything__echo', { message: 'still here' });
  expect(await echo()).toBe('Echo: still here');
  balancer.target = after.url;
  await scene.beside(async () => {
    expect(await Promise.all(texts.map(echo))).toEqual(texts.map(() => 'Echo: still here'));
  });
  expect(await scene.view('everything')).toMatchObject({ state: 'ready', restarts: 1 });
});
