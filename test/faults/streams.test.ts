import { describe, expect, it } from 'vitest';
import { HttpBackend } from '../helpers/http-backend.ts';
import { errorIn, Scene } from './scene.ts';

/** The call in flight fails once with its stream; the next one succeeds. */
async function dropsOneCall(backend: HttpBackend, scene: Scene): Promise<void> {
  const stuck = await scene.stuckCall('dropping', 'lost');
  await scene.beside(async () => {
    backend.dropStreams();
    expect(await errorIn(stuck)).toMatchObject({
      code: -32603,
      message: expect.stringMatching(
        /^Server "dropping": .*the call may have been executed, and is not sent again/,
      ),
      data: { code: 'server_unavailable', server: 'dropping' },
    });
    const answer = await scene.echoOf('dropping__echo', { text: 'next' });
    expect(answer).toMatchObject({ text: 'next', name: 'dropping' });
  });
  expect([backend.executionsOf('lost'), backend.executionsOf('next')]).toEqual([1, 1]);
}

describe.concurrent('a server over HTTP+SSE', () => {
  it('whose stream drops fails its calls in flight, and gets another stream at once [P7]', async () => {
    await using backend = await HttpBackend.start('dropping', { transport: 'sse' });
    await using scene = await Scene.start({ dropping: { type: 'sse', url: backend.url } });
    await dropsOneCall(backend, scene);
    expect(await scene.view('dropping')).toMatchObject({ state: 'ready', restarts: 1 });
  });

  it('that stays away fails calls at once with the time of the next try [P7]', async () => {
    await using backend = await HttpBackend.start('away', { transport: 'sse' });
    await using scene = await Scene.start({ away: { type: 'sse', url: backend.url } });
    const stuck = await scene.stuckCall('away', 'lost');
    await backend.goAway();
    expect((await errorIn(stuck))?.message).toContain('Server "away"');
    // The first event is the loss, with an immediate retry; now it waits for an hour.
    const { next_try } = await scene.reaches('away', 'backing_off', 2);
    const errors = await scene.beside(() =>
      Promise.all(['one', 'two'].map((text) => scene.errorOf('away__echo', { text }))),
    );
    for (const error of errors) {
      expect(error).toMatchObject({
        code: -32603,
        message: expect.stringMatching(/^Server "away" .*ECONNREFUSED.* \(backing off, next try in \d+ s\)$/),
        data: { code: 'server_unavailable', server: 'away', nextTry: next_try },
      });
    }
    expect(await scene.view('away')).toMatchObject({ state: 'backing_off', next_try });
    expect(await scene.session.toolNames()).toContain('away__echo');
  });

  it('that is lost, and then accepts connections without a response, is awaited until the deadline of a call [P7]', async () => {
    await using backend = await HttpBackend.start('mute', { transport: 'sse' });
    await using scene = await Scene.start({ mute: { type: 'sse', url: backend.url, timeoutMs: 200 } });
    backend.fallSilent();
    backend.dropStreams();
    await scene.reaches('mute', 'backing_off');
    expect(await scene.beside(() => scene.errorOf('mute__echo', { text: 'lost' }))).toMatchObject({
      message: expect.stringMatching(
        /^Server "mute" was not available within \d+ ms \(setting timeoutMs\)\.$/,
      ),
      data: { code: 'call_timeout', server: 'mute' },
    });
  });

  it('is retried with growing delays, and used again when it is back [P7]', async () => {
    await using backend = await HttpBackend.start('away', { transport: 'sse' });
    await using scene = await Scene.start(
      { away: { type: 'sse', url: backend.url } },
      { backoffFirstMs: 40, breakerFailures: 100 },
    );
    await backend.goAway();
    await scene.beside(() => scene.reaches('away', 'backing_off', 5));
    await backend.comeBack();
    await scene.reaches('away', 'ready', 2);
    expect(await scene.echoOf('away__echo', { text: 'back' })).toMatchObject({ text: 'back' });

    const [lost, ...failed] = scene
      .changesTo('away', 'backing_off')
      .map(({ since, next_try }) => Date.parse(next_try!) - Date.parse(since));
    expect(lost).toBe(0);
    failed.forEach((wait, failures) => {
      expect(wait).toBeGreaterThanOrEqual((40 * 2 ** failures) / 2);
      expect(wait).toBeLessThanOrEqual(40 * 2 ** failures);
    });
  });
});

describe.concurrent('a server over streamable HTTP', () => {
  it('that drops the stream of a response fails only that call', async () => {
    await using backend = await HttpBackend.start('dropping', { answers: 'events' });
    await using scene = await Scene.start({ dropping: { url: backend.url } });
    await dropsOneCall(backend, scene);
    expect(await scene.view('dropping')).toMatchObject({ state: 'ready', restarts: 0 });
  });
});
