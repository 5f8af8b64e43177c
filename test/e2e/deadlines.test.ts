import { describe, expect, it } from 'vitest';
import { startCounting } from '../helpers/counting.ts';
import { callWithin, timePasses } from '../helpers/deadlines.ts';
import { HttpPeer } from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { serverOf } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const HOUR = 3_600_000;

function timedOut(server: string, timeoutMs: number): object {
  return {
    code: -32603,
    message: expect.stringMatching(
      `^Server "${server}" did not respond within \\d+ ms \\((setting timeoutMs|timeout of the call)\\)\\.$`,
    ),
    data: { code: 'call_timeout', server, timeoutMs },
  };
}

describe.concurrent('a call without a response in time', () => {
  it('fails, is cancelled at the server under its id, and the server keeps running', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      { box: fixtureServer('hangs-in-call', witness.env('box')) },
      { timeoutMs: 2_000 },
    );
    const session = await RawSession.open(switchboard.url);
    const { pid } = JSON.parse(await session.callText('whoami'));
    expect((await session.call('hang')).error).toEqual(timedOut('box', 2_000));

    const isHang = ({ params }: { [detail: string]: unknown }) =>
      (params as { name?: string }).name === 'hang';
    const call = await witness.sees('box', 'tools/call', isHang);
    const { params } = await witness.sees('box', 'notifications/cancelled');
    expect(params).toEqual({ requestId: call.id, reason: 'The call timed out.' });
    expect(JSON.parse(await session.callText('whoami')).pid).toBe(pid);
    expect(await serverOf(switchboard, 'box')).toMatchObject({ state: 'ready', restarts: 0, in_flight: 0 });
  });

  it('over HTTP is cancelled at the server too', async () => {
    await using peer = await HttpPeer.start({ remote: ({ message }) => message?.method === 'tools/call' });
    await using switchboard = await startSwitchboard(peer.configuration(), { timeoutMs: 300 });
    const session = await RawSession.open(switchboard.url);
    expect((await session.call('greet')).error).toEqual(timedOut('remote', 300));
    const call = await peer.sees('remote', ({ message }) => message?.method === 'tools/call');
    const cancel = await peer.sees('remote', ({ message }) => message?.method === 'notifications/cancelled');
    expect(cancel.message?.params?.requestId).toBe(call.message?.id);
  });

  it('gets no late response, and neither does another call', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      box: fixtureServer('answers-on-next-call', witness.env('box')),
    });
    const session = await RawSession.open(switchboard.url);
    const late = await callWithin(session, 300, 'later', { text: 'nobody' });
    expect(late.error).toEqual(timedOut('box', 300));
    // This call makes the server answer the cancelled one first.
    expect(JSON.parse(await session.callText('echo', { text: 'somebody' })).text).toBe('somebody');
    expect(await serverOf(switchboard, 'box')).toMatchObject({ state: 'ready', in_flight: 0 });
  });
});

describe.concurrent('the timeout of a call', () => {
  it('is set for all servers, for one server, or by the client, which takes precedence', async () => {
    await using switchboard = await startSwitchboard(
      {
        usual: fixtureServer('hangs-in-call'),
        own: { ...fixtureServer('hangs-in-call'), timeoutMs: 250 },
        capped: { ...fixtureServer('hangs-in-call'), timeoutMs: 100, maxTimeoutMs: 350 },
      },
      { timeoutMs: 200 },
    );
    const session = await RawSession.open(switchboard.url);
    const errorOf = async (name: string, wish?: number) =>
      (await (wish === undefined ? session.call(name) : callWithin(session, wish, name))).error;
    expect(await errorOf('usual__hang')).toEqual(timedOut('usual', 200));
    expect(await errorOf('own__hang')).toEqual(timedOut('own', 250));
    expect(await errorOf('own__hang', 300)).toEqual(timedOut('own', 300));
    expect(await errorOf('own__hang', 50)).toEqual(timedOut('own', 50));
    // The server's maximum limits every client.
    expect(await errorOf('capped__hang', HOUR)).toEqual(timedOut('capped', 350));
  });

  it('can exceed the default if the client asks for it', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      {
        box: fixtureServer('toolbox', witness.env('box')),
        clock: fixtureServer('hangs-in-call'),
      },
      { timeoutMs: 200 },
    );
    const session = await RawSession.open(switchboard.url);
    const patient = callWithin(session, HOUR, 'wait');
    await witness.sees('box', 'waiting');
    await timePasses(session, 500);
    witness.tell('box', 'go');
    expect(await patient).toMatchObject({ result: { content: [{ text: 'waited' }] } });
  });

  it('follows an edit of the file without a restart', async () => {
    await using witness = await Witness.open();
    const servers = (timeoutMs: number) => ({
      box: { ...fixtureServer('hangs-in-call', witness.env('box')), timeoutMs },
    });
    await using switchboard = await startSwitchboard(servers(HOUR));
    const session = await RawSession.open(switchboard.url);
    await session.toolNames();
    await switchboard.configure(servers(200));
    await switchboard.event(({ event }) => event === 'configuration');
    expect((await session.call('hang')).error).toEqual(timedOut('box', 200));
    await witness.severalOf('box', 'start', 1);
    expect(witness.seenBy('box', 'start')).toHaveLength(1);
  });

  it('must be a whole number of milliseconds; other values are rejected with the expected format', async () => {
    await using switchboard = await startSwitchboard({ box: fixtureServer('hangs-in-call') });
    const session = await RawSession.open(switchboard.url);
    // The first call comes before discovery, the others after it.
    for (const wish of [-1, '1000', 0, 1.5, null, true, [1], {}]) {
      expect((await callWithin(session, wish, 'hang')).error).toEqual({
        code: -32602,
        message: 'The _meta["dev.switchboard/timeoutMs"] must be a whole number of milliseconds, 1 or more.',
        data: { code: 'invalid_params' },
      });
    }
  });
});

describe.concurrent('progress', () => {
  const toil = (session: RawSession, steps: number) => session.openCall('toil', { steps }, 'token');
  const isAnswer = ({ id }: { id?: unknown }) => id === 1;

  it('extends the deadline', async () => {
    await using switchboard = await startSwitchboard({
      box: { ...fixtureServer('reports-progress'), timeoutMs: 1_000 },
    });
    const stream = await toil(await RawSession.open(switchboard.url), 15);
    expect(await stream.message(isAnswer)).toMatchObject({ result: { content: [{ text: 'done' }] } });
    expect(stream.messages).toHaveLength(15 + 1);
  });

  it('does not extend it beyond maxTimeoutMs', async () => {
    await using switchboard = await startSwitchboard({
      box: { ...fixtureServer('reports-progress'), timeoutMs: 1_000, maxTimeoutMs: 1_500 },
    });
    const stream = await toil(await RawSession.open(switchboard.url), Number.MAX_SAFE_INTEGER);
    const { error } = await stream.message(isAnswer);
    expect(error).toEqual(timedOut('box', 1_000));
    expect(Number(/within (\d+) ms/.exec(error!.message)![1])).toBeGreaterThanOrEqual(1_500);
  });

  it('that the client did not request is not sent, and extends nothing', async () => {
    await using switchboard = await startSwitchboard({ box: fixtureServer('reports-progress') });
    const session = await RawSession.open(switchboard.url);
    const { error } = await callWithin(session, 300, 'toil', { steps: Number.MAX_SAFE_INTEGER });
    expect(error).toEqual(timedOut('box', 300));
  });
});

describe.concurrent('the time that counts towards a timeout', () => {
  it('includes the time in the queue, and a call that expires there is never sent', async () => {
    await using started = await startCounting({ concurrency: 1 });
    const session = await started.open();
    const [running] = await started.lineUp(session, ['running']);
    const { error } = await callWithin(session, 300, 'work', { text: 'too late' });
    expect(error).toEqual({
      code: -32603,
      message: expect.stringMatching(/^Server "box" had no free slot within \d+ ms \(.*\)\.$/),
      data: { code: 'call_timeout', server: 'box', timeoutMs: 300 },
    });
    await started.loaded(1, 0);
    started.witness.tell('box', 'finish all');
    expect(await running).toBe('running');
    expect(await session.callText('work', { text: 'last' })).toBe('last');
    expect(await started.worked(2)).toEqual(['running', 'last']);
    expect(started.witness.seenBy('box', 'cancelled')).toEqual([]);
  });

  it('starts after the first start of the server, which has connectTimeoutMs, but includes a restart', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      {
        box: { ...fixtureServer('delays-handshake', witness.env('box')), timeoutMs: 3_000 },
        clock: fixtureServer('hangs-in-call'),
      },
      { connectTimeoutMs: HOUR, discoveryWaitMs: HOUR },
    );
    const session = await RawSession.open(switchboard.url);
    const clock = await RawSession.open(switchboard.url);
    const first = session.callText('late_tool');
    const { pid } = await witness.sees('box', 'initialize');
    // Before discovery, a call of its tool would wait for all servers.
    await switchboard.event(({ name, state }) => name === 'clock' && state === 'ready');
    await timePasses(clock, 3_500);
    witness.tell('box', 'answer');
    expect(await first).toBe('better late than never');

    process.kill(pid, 'SIGKILL');
    await witness.sees('box', 'initialize', (sighting) => sighting.pid !== pid);
    const { error } = await session.call('late_tool');
    expect(error).toMatchObject({
      message: expect.stringMatching(
        /^Server "box" was not available within \d+ ms \(setting timeoutMs\)\.$/,
      ),
      data: { code: 'call_timeout', server: 'box' },
    });
  });

  it('includes the server start if the client set it, and the call is never sent', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      { box: fixtureServer('delays-handshake', witness.env('box')) },
      { connectTimeoutMs: HOUR, discoveryWaitMs: HOUR },
    );
    const session = await RawSession.open(switchboard.url);
    const first = session.callText('late_tool', { text: 'first' });
    const { pid } = await witness.sees('box', 'initialize');
    witness.tell('box', 'answer');
    await first;

    process.kill(pid, 'SIGKILL');
    await witness.sees('box', 'initialize', (sighting) => sighting.pid !== pid);
    const { error } = await callWithin(session, 300, 'late_tool', { text: 'too late' });
    expect(error).toMatchObject({
      message: expect.stringMatching(
        /^Server "box" was not available within \d+ ms \(timeout of the call\)\.$/,
      ),
      data: { code: 'call_timeout', server: 'box', timeoutMs: 300 },
    });
    witness.tell('box', 'answer');
    expect(await session.callText('late_tool', { text: 'last' })).toBe('better late than never');
    const calls = await witness.severalOf('box', 'tools/call', 2);
    expect(calls.map(({ params }) => params)).toMatchObject([
      { arguments: { text: 'first' } },
      { arguments: { text: 'last' } },
    ]);
  });
});
