import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { patienceMs } from '../helpers/patience.ts';
import { EventStream, openExchange, RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** Resolves when the subscription waits: its response has become a stream with keep-alive comments. */
async function subscribeAndWait(session: RawSession, uri: string): Promise<EventStream> {
  const body = { jsonrpc: '2.0', id: uri, method: 'resources/subscribe', params: { uri } };
  return new EventStream(await openExchange(session.url, { headers: session.headers(), body }));
}

describe.concurrent('a subscription that waits for discovery', () => {
  /** One server never lists, so requests that need all servers wait. */
  async function startWaiting() {
    const witness = await Witness.open();
    const switchboard = await startSwitchboard(
      {
        own: { ...fixtureServer('notes', witness.env('own')), isolation: 'session' },
        shared: fixtureServer('notes', witness.env('shared')),
        stalling: fixtureServer('delays-prompt-list', witness.env('stalling')),
      },
      { discoveryWaitMs: 3_600_000, connectTimeoutMs: 3_600_000, keepAliveMs: 50 },
    );
    const session = await RawSession.open(switchboard.url);
    const waiting = [
      await subscribeAndWait(session, 'resource://own/note://todo'),
      await subscribeAndWait(session, 'resource://shared/note://todo'),
    ];
    for (const server of ['own', 'shared', 'stalling']) await witness.sees(server, 'start');
    return {
      witness,
      switchboard,
      session,
      waiting,
      subscribedTo: async (server: string) => {
        const seen = await witness.severalOf(server, 'message', 1, isSubscription);
        return seen.map(({ params }) => (params as { uri: string }).uri);
      },
      async [Symbol.asyncDispose]() {
        await switchboard.stop();
        await witness[Symbol.asyncDispose]();
      },
    };
  }
  const isSubscription = ({ method }: { [detail: string]: unknown }) => method === 'resources/subscribe';

  it('ends with its session: no server is started or asked for it', async () => {
    await using started = await startWaiting();
    const { witness, switchboard, session, waiting } = started;
    expect((await session.end()).status).toBe(200);
    await Promise.all(waiting.map(({ ended }) => ended));
    expect(waiting.flatMap(({ messages }) => messages)).toEqual([]);
    witness.tell('stalling', 'list prompts');

    // Later requests of another client arrive after any unwanted one.
    const next = await RawSession.open(switchboard.url);
    for (const server of ['own', 'shared']) {
      const uri = `resource://${server}/note://done`;
      expect(await next.request('resources/subscribe', { uri })).toMatchObject({ result: {} });
      expect(await started.subscribedTo(server)).toEqual(['note://done']);
    }
    // The instance for discovery, and that of the other client.
    await witness.severalOf('own', 'start', 2);
    expect(witness.seenBy('own', 'start')).toHaveLength(2);
  });

  it('does not keep Switchboard from stopping, and leaves no process behind', async () => {
    await using started = await startWaiting();
    const { witness, switchboard } = started;
    const exited = once(switchboard.process, 'exit');
    switchboard.process.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    for (const server of ['own', 'shared', 'stalling']) {
      const { pid } = await witness.sees(server, 'end');
      expect(witness.seenBy(server, 'start').map((sighting) => sighting.pid)).toEqual([pid]);
    }
  });
});

describe.concurrent('a subscription that waits for the handshake of an isolated process', () => {
  async function startLate() {
    const witness = await Witness.open();
    const switchboard = await startSwitchboard(
      {
        late: { ...fixtureServer('delays-handshake', witness.env('late')), isolation: 'session' },
      },
      { startup: 'parallel', connectTimeoutMs: 3_600_000, keepAliveMs: 50 },
    );
    const first = await witness.sees('late', 'start');
    witness.tell('late', 'answer');
    await switchboard.event(({ state }) => state === 'ready');
    const session = await RawSession.open(switchboard.url);
    const waiting = await subscribeAndWait(session, 'resource://late/note://todo');
    const own = await witness.sees('late', 'initialize', ({ pid }) => pid !== first.pid);
    return {
      switchboard,
      session,
      waiting,
      ownProcessEnded: witness.sees('late', 'end', ({ pid }) => pid === own.pid),
      async [Symbol.asyncDispose]() {
        await switchboard.stop();
        await witness[Symbol.asyncDispose]();
      },
    };
  }

  it('ends with its session, and so does the process', async () => {
    await using late = await startLate();
    await late.session.end();
    await late.waiting.ended;
    await late.ownProcessEnded;
    expect(late.waiting.messages).toEqual([]);
  });

  it('does not keep Switchboard from stopping, and leaves no process behind', async () => {
    await using late = await startLate();
    const exited = once(late.switchboard.process, 'exit');
    late.switchboard.process.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    await late.ownProcessEnded;
  });
});

it.concurrent('a session is not idle right after a call longer than sessionIdleMs', async () => {
  await using witness = await Witness.open();
  const sessionIdleMs = 3_000;
  const keepAliveMs = 100;
  await using switchboard = await startSwitchboard(
    { box: fixtureServer('toolbox', witness.env('box')) },
    { sessionIdleMs, keepAliveMs },
  );
  const calling = await RawSession.open(switchboard.url);
  const listening = await RawSession.open(switchboard.url);
  const standing = await listening.listen();
  const call = await calling.openCall('wait', {}, 'token');
  const isKeepAlive = ({ data }: { data?: string }) => data === undefined;
  // Idle sessions are checked with each keep-alive comment, so these comments show that the time has passed.
  await call.events.several(sessionIdleMs / keepAliveMs + 5, isKeepAlive);
  witness.tell('box', 'go');
  expect(await call.message(({ result }) => result !== undefined)).toMatchObject({
    result: { content: [{ text: 'waited' }] },
  });
  for (let looks = 0; looks < 2; looks++) await standing.events.next(isKeepAlive);
  expect(await calling.callText('echo', { text: 'still there' })).toBe('still there');
});

it('servers that cannot start for lack of file descriptors fail, and the others work', async () => {
  // Reads its input and writes nothing. The shell keeps the output open, so no descriptor is released.
  const mute = { command: 'sh', args: ['-c', 'cat > /dev/null; exit'] };
  const mutes = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`mute_${index}`, mute]));
  await using switchboard = await startSwitchboard(
    { notes: fixtureServer('notes'), ...mutes },
    { startup: 'parallel', discoveryWaitMs: 0, connectTimeoutMs: patienceMs },
    { openFiles: 60 },
  );
  const failed = await switchboard.event(({ name, state }) => name === 'mute_39' && state === 'backing_off');
  expect(failed.error).toContain('EMFILE');
  await switchboard.event(({ name, state }) => name === 'notes' && state === 'ready');
  const session = await RawSession.open(switchboard.url);
  expect(await session.callText('touch')).toBe('done');
  expect(switchboard.events.filter(({ event }) => event === 'warning')).toEqual([]);
});
