import { describe, expect, it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { echoServer, Scene } from './scene.ts';

const texts = Array.from({ length: 30 }, (_, index) => `text ${index}`);

describe('a server that', () => {
  let scene: Scene;

  setUp(async (use) => {
    scene = use(
      await Scene.start(
        (witness) => ({
          trailing: echoServer(witness, 'exits-mid-response', 'trailing'),
          belated: echoServer(witness, 'answers-on-next-call', 'belated'),
          repeating: echoServer(witness, 'responds-twice', 'repeating'),
          misdirecting: echoServer(witness, 'sends-unknown-ids', 'misdirecting'),
          flooding: echoServer(witness, 'floods-stdout', 'flooding'),
          deaf: echoServer(witness, 'stops-reading', 'deaf'),
        }),
        { maxMessageBytes: 1024 * 1024 },
      ),
    );
  });

  it('writes half a message and exits fails the call at once; the half is logged and not sent to clients', async () => {
    const error = await scene.beside(() => scene.errorOf('trailing__half'));
    expect(error).toMatchObject({
      code: -32603,
      message: `Server "trailing": The server process exited with code 0 (the call may have been executed, and is not sent again)`,
      data: { code: 'server_unavailable', server: 'trailing', exitCode: 0 },
    });
    expect(await scene.echoOf('trailing__echo', { text: 'whole' })).toMatchObject({ text: 'whole' });
    expect(await scene.log('trailing')).toContainEqual(expect.stringContaining('skipped an invalid message'));
  });

  it('responds late affects no other call: the next one gets its own response', async () => {
    const error = await scene.beside(() =>
      scene.errorOf('belated__later', { text: 'first' }, { 'dev.switchboard/timeoutMs': 200 }),
    );
    expect(error).toMatchObject({ code: -32603, data: { code: 'call_timeout', server: 'belated' } });
    const before = await scene.log('belated');
    expect(before.at(-1)).toBe(`a call failed: ${error.message}`);
    // This call makes the server send the late response.
    expect(await scene.echoOf('belated__echo', { text: 'second' })).toMatchObject({ text: 'second' });
    const rest = await Promise.all(texts.map((text) => scene.echoOf('belated__echo', { text })));
    expect(rest.map(({ text }) => text)).toEqual(texts);
    expect(await scene.log('belated')).toEqual(before);
    expect(await scene.view('belated')).toMatchObject({ state: 'ready', restarts: 0, in_flight: 0 });
  });

  it('responds to a cancelled call sends nothing to clients', async () => {
    const params = { name: 'belated__later', arguments: { text: 'third' } };
    const cancelled = scene.session.post({ jsonrpc: '2.0', id: 'third', method: 'tools/call', params });
    const begun = await scene.witness.sees('belated', 'tools/call', ({ params: seen }) => {
      return (seen as typeof params).arguments.text === 'third';
    });
    await scene.session.notify('notifications/cancelled', { requestId: 'third' });
    await scene.witness.sees('belated', 'notifications/cancelled', ({ params: seen }) => {
      return (seen as { requestId: unknown }).requestId === begun.id;
    });
    expect(await scene.echoOf('belated__echo', { text: 'fourth' })).toMatchObject({ text: 'fourth' });
    expect((await cancelled).text).toBe('');
    expect((await scene.log('belated')).join('\n')).not.toContain('response to no pending request');
  });

  it('responds twice is heard once', async () => {
    const answers = await scene.beside(() =>
      Promise.all(texts.map((text) => scene.echoOf('repeating__echo', { text }))),
    );
    expect(answers.map(({ text }) => text)).toEqual(texts);
    expect(answers.every(({ name }) => name === 'repeating')).toBe(true);
    const dropped = (await scene.log('repeating')).filter((line) =>
      line.includes('response to no pending request'),
    );
    expect(dropped.length).toBeGreaterThan(0);
    expect(await scene.view('repeating')).toMatchObject({ state: 'ready', in_flight: 0 });
  });

  it('responds with unknown ids is heard only for real calls', async () => {
    const answers = await scene.beside(() =>
      Promise.all(texts.map((text) => scene.echoOf('misdirecting__echo', { text }))),
    );
    expect(answers.map(({ text }) => text)).toEqual(texts);
    expect(await scene.log('misdirecting')).toContain(
      'dropped a response to no pending request (id 999999999)',
    );
    expect(await scene.view('misdirecting')).toMatchObject({ state: 'ready', in_flight: 0 });
  });

  it('floods its stdout still responds, and so do all others', async () => {
    expect(await scene.session.callText('flooding__flood')).toBe('flooding');
    await scene.beside(async () => {
      const answers = await Promise.all(texts.map((text) => scene.echoOf('flooding__echo', { text })));
      expect(answers.map(({ text }) => text)).toEqual(texts);
    });
    expect(await scene.session.callText('flooding__calm')).toBe('calm');
    const log = await scene.log('flooding');
    expect(log.length).toBeLessThanOrEqual(200);
    expect(log).toContain('stdout: skipped a line that is not JSON-RPC: junk that is not a message');
  });

  it('never reads its stdin fails calls at their deadline, and at once when its pipe is full', async () => {
    const text = 'x'.repeat(300_000);
    const meta = { 'dev.switchboard/timeoutMs': 300 };
    const late = await scene.beside(() => scene.errorOf('deaf__listen', {}, meta));
    expect(late).toMatchObject({ code: -32603, data: { code: 'call_timeout', server: 'deaf' } });
    expect(late.message).toContain('(timeout of the call)');

    const { first, waiting } = await scene.beside(async () => {
      const waiting = Array.from({ length: 5 }, () => scene.errorOf('deaf__listen', { text }));
      return { waiting, first: await Promise.race(waiting) };
    });
    expect(first).toMatchObject({
      code: -32603,
      message: expect.stringContaining('Server "deaf": The server does not read its stdin'),
      data: { code: 'server_unavailable', server: 'deaf' },
    });
    scene.witness.tell('deaf', 'end');
    for (const error of await Promise.all(waiting)) expect(error.message).toContain('Server "deaf"');
  });
});
