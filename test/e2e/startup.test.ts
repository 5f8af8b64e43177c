import { describe, expect, it } from 'vitest';
import { connectHttp, connectSse, textOf } from '../helpers/clients.ts';
import { HttpPeer } from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { serverOf } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** The transitions of all servers, in order. */
function transitions(events: { [key: string]: unknown }[]): string[] {
  return events.filter(({ event }) => event === 'server').map(({ name, state }) => `${name} ${state}`);
}

const isServer = (name: string, state: string) => (event: { [key: string]: unknown }) =>
  event.event === 'server' && event.name === name && event.state === state;

const slowStart = { discoveryWaitMs: 3_600_000, connectTimeoutMs: 3_600_000 };

describe.concurrent('servers that start with Switchboard', () => {
  const names = ['first', 'second', 'third'];
  const lateServers = (witness: Witness) =>
    Object.fromEntries(names.map((name) => [name, fixtureServer('delays-handshake', witness.env(name))]));

  it('start in sequence: each when the one before is ready [M11]', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(lateServers(witness), {
      startup: 'sequential',
      ...slowStart,
    });
    for (const name of names) {
      await witness.sees(name, 'initialize');
      witness.tell(name, 'answer');
    }
    await switchboard.event(isServer('third', 'ready'));
    const expected = names.flatMap((name) => [`${name} starting`, `${name} ready`]);
    const starts = transitions(switchboard.events).filter((text) => !text.endsWith('idle'));
    expect(starts.filter((text, index) => starts.indexOf(text) === index)).toEqual(expected);
  });

  it('start in parallel, and none waits for another', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(lateServers(witness), {
      startup: 'parallel',
      ...slowStart,
    });
    await Promise.all(names.map((name) => witness.sees(name, 'initialize')));
    expect(transitions(switchboard.events).filter((text) => text.endsWith('ready'))).toEqual([]);
    for (const name of names.toReversed()) {
      witness.tell(name, 'answer');
      await switchboard.event(isServer(name, 'ready'));
    }
  });

  it('continue without one that fails, unless onStartFailure is abort', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      {
        good: fixtureServer('reports-messages', witness.env('good')),
        bad: fixtureServer('fails-to-start'),
        next: fixtureServer('reports-messages', witness.env('next')),
      },
      { startup: 'sequential' },
    );
    await switchboard.event(isServer('next', 'ready'));
    expect(await serverOf(switchboard, 'bad')).toMatchObject({
      state: expect.stringMatching(/^(backing_off|starting|breaker_open)$/),
      error: expect.stringContaining('API_TOKEN is not set'),
    });
    const session = await RawSession.open(switchboard.url);
    for (const name of ['good', 'next']) {
      const { pid } = await witness.sees(name, 'start');
      expect(JSON.parse(await session.callText(`${name}__whoami`)).pid).toBe(pid);
    }
  });

  it('start all replicas before any client connects', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      { many: { ...fixtureServer('reports-messages', witness.env('many')), replicas: 3 } },
      { startup: 'parallel', onStartFailure: 'abort' },
    );
    const started = await witness.severalOf('many', 'start', 3);
    expect(new Set(started.map(({ pid }) => pid)).size).toBe(3);
    const { state, replicas } = await serverOf(switchboard, 'many');
    expect({ state, replicas: replicas.map((replica) => replica.state) }).toEqual({
      state: 'ready',
      replicas: ['ready', 'ready', 'ready'],
    });
    await switchboard.stop();
    expect(await witness.severalOf('many', 'end', 3)).toHaveLength(3);
    await witness.severalOf('many', 'start', 3);
    expect(witness.seenBy('many', 'start')).toHaveLength(3);
  });
});

describe.concurrent('flags of switchboard up override the file:', () => {
  it('--startup lazy starts nothing', async () => {
    await using switchboard = await startSwitchboard(
      { bad: { ...fixtureServer('fails-to-start'), startup: 'parallel' } },
      { onStartFailure: 'abort' },
      { args: ['--startup', 'lazy'] },
    );
    expect(await serverOf(switchboard, 'bad')).toMatchObject({ state: 'idle', error: null });
  });

  it('--on-start-failure continue keeps running', async () => {
    await using switchboard = await startSwitchboard(
      { bad: { ...fixtureServer('fails-to-start'), startup: 'parallel' } },
      { onStartFailure: 'abort' },
      { args: ['--on-start-failure', 'continue'] },
    );
    await switchboard.event(isServer('bad', 'backing_off'));
  });

  it('and still do after an edit of the file', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      {},
      {},
      { args: ['--startup', 'parallel', '--on-start-failure', 'abort'] },
    );
    const added = { ...fixtureServer('reports-messages', witness.env('added')), startup: 'lazy' };
    await switchboard.configure({ added, bad: fixtureServer('fails-to-start') });
    // A running Switchboard does not exit because an added server fails.
    await switchboard.event(isServer('bad', 'backing_off'));
    await switchboard.event(isServer('added', 'ready'));
  });
});

describe.concurrent('servers that start on first use', () => {
  it('start once for simultaneous first requests, and serve all later ones [M13] [P11]', async () => {
    await using witness = await Witness.open();
    await using peer = await HttpPeer.start({ remote: () => false });
    await using switchboard = await startSwitchboard({
      one: fixtureServer('reports-messages', witness.env('one')),
      other: fixtureServer('reports-messages', witness.env('other')),
      ...peer.configuration(),
    });
    const sessions = await Promise.all(Array.from({ length: 12 }, () => RawSession.open(switchboard.url)));
    const pids = await Promise.all(
      sessions.map(async (session, index) => {
        if (index % 3 === 0) await session.toolNames();
        if (index % 3 === 1) expect(await session.callText('greet')).toBe('hello');
        return JSON.parse(await session.callText('one__whoami')).pid;
      }),
    );
    const [started] = witness.seenBy('one', 'start');
    expect(new Set(pids)).toEqual(new Set([started!.pid]));
    await using late = await connectSse(`${switchboard.baseUrl}/sse`);
    expect(JSON.parse(textOf(await late.client.callTool({ name: 'one__whoami' }))).pid).toBe(started!.pid);
    for (const name of ['one', 'other']) {
      await witness.severalOf(name, 'start', 1);
      expect(witness.seenBy(name, 'start')).toHaveLength(1);
      const handshakes = witness.seenBy(name, 'message').filter(({ method }) => method === 'initialize');
      expect(handshakes).toHaveLength(1);
    }
    const remote = peer.seenBy('remote').filter(({ message }) => message?.method === 'initialize');
    expect(remote).toHaveLength(1);
  });

  it('run only from then on, and keep running when their first client leaves [P10]', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      lazy: fixtureServer('reports-messages', witness.env('lazy')),
    });
    {
      await using first = await connectHttp(switchboard.url);
      expect(await serverOf(switchboard, 'lazy')).toMatchObject({ state: 'idle', tool_count: null });
      expect(witness.seenBy('lazy', 'start')).toEqual([]);
      await first.client.callTool({ name: 'whoami' });
    }
    const { pid } = await witness.sees('lazy', 'start');
    await using second = await connectHttp(switchboard.url);
    expect(JSON.parse(textOf(await second.client.callTool({ name: 'whoami' }))).pid).toBe(pid);
    await witness.severalOf('lazy', 'start', 1);
    expect(witness.seenBy('lazy', 'start')).toHaveLength(1);
    expect(await serverOf(switchboard, 'lazy')).toMatchObject({ state: 'ready', restarts: 0 });
  });

  it('are shared by clients that connect during the start [M13]', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(
      { late: fixtureServer('delays-handshake', witness.env('late')) },
      { ...slowStart, keepAliveMs: 50 },
    );
    const first = await RawSession.open(switchboard.url);
    const second = await RawSession.open(switchboard.url);
    // Both calls have become streams with keep-alive comments, so Switchboard has them.
    const waiting = [await first.openCall('late_tool', {}, 1), await second.openCall('late_tool', {}, 1)];
    await witness.sees('late', 'initialize');
    witness.tell('late', 'answer');
    for (const stream of waiting) {
      expect(await stream.message(({ id }) => id === 1)).toMatchObject({ result: {} });
    }
    await witness.severalOf('late', 'start', 1);
    expect(witness.seenBy('late', 'start')).toHaveLength(1);
    await witness.severalOf('late', 'initialize', 1);
    expect(witness.seenBy('late', 'initialize')).toHaveLength(1);
  });
});
