import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HttpBackend } from '../helpers/http-backend.ts';
import { answerJson, goodResult, HttpPeer } from '../helpers/http-peer.ts';
import { Inbox } from '../helpers/inbox.ts';
import { Scene } from './scene.ts';

const texts = Array.from({ length: 30 }, (_, index) => `text ${index}`);

describe.each([
  ['http', 'json'],
  ['http', 'events'],
  ['sse', undefined],
] as const)('a server over %s that forgets its sessions (answers: %s)', (transport, answers) => {
  let backend: HttpBackend;
  let scene: Scene;
  const begun = new Inbox<unknown>();
  let release = () => {};
  // A session that is forgotten again soon after is opened again only after a wait: a new Switchboard has lost none.
  const startScene = () => Scene.start({ forgetful: { type: transport, url: backend.url } });

  beforeAll(async () => {
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    backend = await HttpBackend.start('forgetful', {
      transport,
      ...(answers === undefined ? {} : { answers }),
      tools: {
        hold: async ({ text }) => {
          begun.add(text);
          await released;
          return { content: [{ type: 'text', text: `held ${text}` }] };
        },
      },
    });
    scene = await startScene();
  });
  afterAll(async () => {
    await scene[Symbol.asyncDispose]();
    await backend[Symbol.asyncDispose]();
  });

  it('executes the next call all the same, exactly once', async () => {
    await scene.beside(async () => {
      backend.forgetSessions();
      const answer = await scene.echoOf('forgetful__echo', { text: 'once' });
      expect(answer).toMatchObject({ text: 'once', name: 'forgetful' });
    });
    expect(backend.executionsOf('once')).toBe(1);
    expect((await scene.log('forgetful')).join('\n')).toMatch(/has forgotten our session|HTTP 404/);
  });

  it('executes calls that come together, each exactly once', async () => {
    await using fresh = await startScene();
    await fresh.beside(async () => {
      backend.forgetSessions();
      const results = await Promise.all(texts.map((text) => fresh.echoOf('forgetful__echo', { text })));
      expect(results.map(({ text }) => text)).toEqual(texts);
    });
    for (const text of texts) expect(backend.executionsOf(text)).toBe(1);
    expect(await fresh.view('forgetful')).toMatchObject({ state: 'ready', restarts: 1, in_flight: 0 });
  });

  it('still answers what was under way', async () => {
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

it('a server that forgets every session at once gives one clear error, and is not asked without end', async () => {
  let isForgetful = false;
  let sessions = 0;
  await using peer = await HttpPeer.start({
    amnesiac: ({ message, response, method }) => {
      if (message?.method === 'initialize') {
        const headers = { 'mcp-session-id': `session ${++sessions}` };
        answerJson(response, { id: message.id, result: goodResult(message) }, headers);
        return true;
      }
      if (!isForgetful || method === 'GET') return false;
      response.writeHead(404).end();
      return true;
    },
  });
  await using scene = await Scene.start(peer.configuration());
  expect(await scene.session.callText('amnesiac__greet')).toBe('hello');
  expect(sessions).toBe(1);

  isForgetful = true;
  const error = await scene.beside(() => scene.errorOf('amnesiac__greet'));
  const { next_try } = await scene.reaches('amnesiac', 'backing_off', 2);
  expect(error).toMatchObject({
    code: -32603,
    message: expect.stringMatching(/^Server "amnesiac" .*has forgotten our session.* \(next try in \d+ s\)$/),
    data: { code: 'server_unavailable', server: 'amnesiac', nextTry: next_try },
  });
  // The session that was forgotten, and one more try.
  expect(sessions).toBe(2);
  expect(await scene.errorOf('amnesiac__greet')).toMatchObject({ data: { nextTry: next_try } });
  expect(sessions).toBe(2);
  expect(await scene.session.toolNames()).toContain('amnesiac__greet');
});
