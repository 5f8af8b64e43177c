import { describe, expect, it } from 'vitest';
import { HttpBackend } from '../helpers/http-backend.ts';
import { Inbox } from '../helpers/inbox.ts';
import { Scene } from './scene.ts';

const soon = { backoffFirstMs: 20, backoffMaxMs: 100 };

describe.concurrent.each(['http', 'sse'] as const)('a server over %s that', (transport) => {
  const type = { type: transport };

  it('refuses connections: pending and new calls fail at once, and nothing is replayed after it is back [G8]', async () => {
    const begun = new Inbox<unknown>();
    await using backend = await HttpBackend.start('leaving', {
      transport,
      tools: {
        hold: ({ text }) => {
          begun.add(text);
          return new Promise<never>(() => {});
        },
      },
    });
    await using scene = await Scene.start(
      { leaving: { ...type, url: backend.url } },
      { ...soon, breakerOpenMs: 100 },
    );
    const stream = await scene.session.listen();
    const pending = ['one', 'two'].map((text) => scene.errorOf('leaving__hold', { text }));
    await begun.several(2, () => true);

    await scene.beside(async () => {
      await backend.goAway();
      for (const error of await Promise.all(pending)) {
        expect(error).toMatchObject({
          code: -32603,
          message: expect.stringMatching(
            /^Server "leaving": .*the call may have been executed, and is not sent again/,
          ),
          data: { code: 'server_unavailable', server: 'leaving' },
        });
      }
      const refused = await scene.errorOf('leaving__echo', { text: 'refused' });
      expect(refused).toMatchObject({
        code: -32603,
        data: { code: 'server_unavailable', server: 'leaving' },
      });
      expect(refused.message).toMatch(/ECONNREFUSED|closed|ECONNRESET/);
    });
    await scene.reaches('leaving', 'breaker_open');
    expect(await scene.session.toolNames()).toContain('leaving__echo');

    // From here on no client sends anything.
    const isNews = ({ message }: { message?: { method?: string } }) =>
      message?.method === 'notifications/tools/list_changed';
    const announced = stream.events.next(isNews);
    await backend.comeBack();
    await scene.reaches('leaving', 'ready', 2);
    await announced;

    expect(await scene.echoOf('leaving__echo', { text: 'new' })).toMatchObject({ name: 'leaving' });
    const executed = ['one', 'two', 'refused', 'new'].map((text) => backend.executionsOf(text));
    expect(executed).toEqual([1, 1, 0, 1]);
  });

  it('accepts a call and never responds fails it at its deadline, and is not restarted', async () => {
    await using backend = await HttpBackend.start('mute', { transport });
    await using scene = await Scene.start({ mute: { ...type, url: backend.url } });
    backend.fallSilent();
    const error = await scene.beside(() =>
      scene.errorOf('mute__echo', { text: 'lost' }, { 'dev.switchboard/timeoutMs': 200 }),
    );
    expect(error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/^Server "mute" did not respond within \d+ ms \(.*\)\.$/),
      data: { code: 'call_timeout', server: 'mute', timeoutMs: 200 },
    });
    backend.behave();
    expect(await scene.echoOf('mute__echo', { text: 'heard' })).toMatchObject({ text: 'heard' });
    expect(await scene.view('mute')).toMatchObject({ state: 'ready', restarts: 0 });
  });

  it('accepts a connection and never responds is given up after connectTimeoutMs, and used when it responds', async () => {
    await using backend = await HttpBackend.start('mute', { transport });
    await using scene = await Scene.start(
      { mute: { ...type, url: backend.url } },
      { ...soon, connectTimeoutMs: 3_000, breakerFailures: 100 },
    );
    await scene.beside(async () => {
      await backend.goAway();
      expect((await scene.errorOf('mute__echo', { text: 'lost' })).message).toContain('Server "mute"');
      backend.fallSilent();
      await backend.comeBack();
      await scene.switchboard.event(({ error }) => String(error).includes('did not complete the handshake'));
    });
    const error = await scene.beside(() => scene.errorOf('mute__echo', { text: 'lost' }));
    expect(error.message).toContain('Server "mute"');
    expect(error.message).toContain(
      'did not complete the handshake within 3000 ms (setting connectTimeoutMs)',
    );
    expect(error).toMatchObject({ code: -32603, data: { server: 'mute' } });
    backend.behave();
    await scene.reaches('mute', 'ready', 2);
    expect(await scene.echoOf('mute__echo', { text: 'heard' })).toMatchObject({ text: 'heard' });
    expect(backend.executionsOf('lost')).toBe(0);
  });

  it('accepts a connection and never responds delays no call while it is retried [P7]', async () => {
    await using backend = await HttpBackend.start('mute', { transport });
    // Only a response ends a try or a call here.
    await using scene = await Scene.start(
      { mute: { ...type, url: backend.url } },
      { ...soon, breakerFailures: 100 },
    );
    await backend.goAway();
    expect((await scene.errorOf('mute__echo', { text: 'lost' })).message).toContain('Server "mute"');
    await scene.reaches('mute', 'backing_off', 2);
    backend.fallSilent();
    await backend.comeBack();
    await backend.ignored.next(() => true);
    const errors = await scene.beside(() =>
      Promise.all(['one', 'two'].map((text) => scene.errorOf('mute__echo', { text }))),
    );
    for (const error of errors) {
      expect(error).toMatchObject({
        code: -32603,
        message: expect.stringMatching(/^Server "mute" .*ECONNREFUSED.* \(connecting again for \d+\.\d s\)$/),
        data: { code: 'server_unavailable', server: 'mute', state: 'starting' },
      });
    }
    await backend.goAway();
    backend.behave();
    await backend.comeBack();
    await scene.reaches('mute', 'ready', 2);
    expect(await scene.echoOf('mute__echo', { text: 'heard' })).toMatchObject({ text: 'heard' });
  });

  it('responds with HTTP 429 and a time is called once, and its error says when to retry [G6]', async () => {
    await using backend = await HttpBackend.start('busy', { transport });
    await using scene = await Scene.start({ busy: { ...type, url: backend.url } });
    backend.failWith(429, { 'retry-after': '7' });
    expect(await scene.errorOf('busy__echo', { text: 'refused' })).toMatchObject({
      code: -32603,
      message: expect.stringMatching(
        /^Server "busy": .* responded with HTTP 429\. It asks to retry in 7 s\. Response: told to fail$/,
      ),
      data: { code: 'server_unavailable', server: 'busy', status: 429, retryAfterMs: 7_000 },
    });
    expect(backend.refusals).toBe(1);
  });

  it.each([500, 503])(
    'responds with HTTP %i fails that call with the reason, and is used again when it recovers',
    async (status) => {
      await using backend = await HttpBackend.start('failing', { transport });
      await using scene = await Scene.start({ failing: { ...type, url: backend.url } });
      backend.failWith(status);
      const error = await scene.beside(() => scene.errorOf('failing__echo', { text: 'refused' }));
      expect(error).toMatchObject({
        code: -32603,
        message: expect.stringContaining(`responded with HTTP ${status}. Response: told to fail`),
        data: { code: 'server_unavailable', server: 'failing', status },
      });
      expect(error.message).toContain('Server "failing"');
      expect(await scene.log('failing')).toContain(`a call failed: ${error.message}`);
      backend.behave();
      expect(await scene.echoOf('failing__echo', { text: 'well' })).toMatchObject({ text: 'well' });
      expect(backend.executionsOf('refused')).toBe(0);
    },
  );

  it('responds with HTTP 503 to the handshake is retried', async () => {
    await using backend = await HttpBackend.start('failing', { transport });
    backend.failWith(503);
    await using scene = await Scene.start(
      { failing: { ...type, url: backend.url } },
      { ...soon, breakerFailures: 100 },
    );
    const stream = await scene.session.listen();
    const { error, next_try } = await scene.reaches('failing', 'backing_off');
    expect(error).toContain('responded with HTTP 503');
    expect(next_try).not.toBeNull();
    backend.behave();
    await scene.reaches('failing', 'ready');
    await stream.message(({ method }) => method === 'notifications/tools/list_changed');
    expect(await scene.echoOf('failing__echo', { text: 'well' })).toMatchObject({ text: 'well' });
  });
});

it.concurrent('a server that fails many calls in a row causes one event, and its log counts the rest', async () => {
  await using backend = await HttpBackend.start('failing');
  await using scene = await Scene.start(
    { failing: { url: backend.url } },
    { ejectAfter: 5, ejectMs: 3_600_000 },
  );
  await scene.reaches('failing', 'ready');
  const { events } = scene.switchboard;
  const before = events.length;
  const linesBefore = (await scene.log('failing')).length;
  backend.failWith(500);
  for (let calls = 0; calls < 50; calls++) await scene.errorOf('failing__echo', { text: 'refused' });
  backend.behave();
  expect(await scene.echoOf('failing__echo', { text: 'well' })).toMatchObject({ text: 'well' });
  await scene.reaches('failing', 'ready', 2);

  const changes = events.slice(before).filter(({ event }) => event === 'server');
  expect(changes).toMatchObject([
    { name: 'failing', from: 'ready', state: 'degraded' },
    { name: 'failing', from: 'degraded', state: 'ready' },
  ]);
  expect(changes[0]!.error).toContain('5 calls in a row failed: Server "failing"');
  const lines = (await scene.log('failing')).slice(linesBefore);
  const counted = lines.map((line) => {
    const more = /^… and (\d+) more calls failed in the last \d+ s$/.exec(line);
    if (more === null) expect(line).toContain('a call failed: Server "failing"');
    return more === null ? 1 : Number(more[1]);
  });
  expect(counted.slice(0, 5)).toEqual([1, 1, 1, 1, 1]);
  expect(counted.reduce((sum, count) => sum + count)).toBe(50);
});
