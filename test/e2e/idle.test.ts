import { describe, expect, it } from 'vitest';
import { HttpBackend } from '../helpers/http-backend.ts';
import { HttpPeer } from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { serverOf } from '../helpers/server-states.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { type Sighting, Witness } from '../helpers/witness.ts';

/** Short, but longer than a call takes. */
const idleStopMs = 1_000;

/** Resolves when the server has been stopped as idle, the first time or again. */
const rested = ({ event, events }: RunningSwitchboard, server: string, times = 1) =>
  event((candidate) => {
    const rests = events.filter(
      ({ name, state, from }) => name === server && state === 'idle' && from !== 'idle',
    );
    return rests.length >= times && rests.includes(candidate);
  });

describe.concurrent('a server that is unused for idleStopMs', () => {
  it('is stopped, stays listed, and is restarted by the next call', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      box: { ...fixtureServer('reports-messages', witness.env('box')), idleStopMs },
    });
    const session = await RawSession.open(switchboard.url);
    const tools = await session.toolNames();
    expect(tools).toEqual(['whoami', 'hold', 'say']);
    const first = JSON.parse(await session.callText('whoami')).pid;

    await rested(switchboard, 'box');
    expect(await witness.sees('box', 'end')).toMatchObject({ pid: first });
    expect(await serverOf(switchboard, 'box')).toMatchObject({ state: 'idle', error: null, tool_count: 3 });
    const newcomer = await RawSession.open(switchboard.url);
    expect(await newcomer.toolNames()).toEqual(tools);
    await witness.severalOf('box', 'start', 1);
    expect(witness.seenBy('box', 'start')).toHaveLength(1);

    const second = JSON.parse(await newcomer.callText('whoami')).pid;
    expect(second).not.toBe(first);
    expect(await witness.severalOf('box', 'start', 2)).toMatchObject([{ pid: first }, { pid: second }]);
    await rested(switchboard, 'box', 2);
    expect(await serverOf(switchboard, 'box')).toMatchObject({ state: 'idle', restarts: 1 });
  });

  it('changes no list: clients get no notification', async () => {
    await using switchboard = await startSwitchboard({ box: { ...fixtureServer('toolbox'), idleStopMs } });
    const session = await RawSession.open(switchboard.url);
    await session.toolNames();
    const standing = await session.listen();
    await rested(switchboard, 'box');
    expect(await session.callText('echo', { text: 'awake' })).toBe('awake');
    await rested(switchboard, 'box', 2);
    // Earlier notifications would come before this one.
    await session.callText('add', { name: 'more' });
    await standing.message(({ method }) => method === 'notifications/tools/list_changed');
    expect(standing.messages).toHaveLength(1);
  });

  it('is started once by many calls', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      box: { ...fixtureServer('reports-messages', witness.env('box')), idleStopMs },
    });
    const sessions = await Promise.all(Array.from({ length: 8 }, () => RawSession.open(switchboard.url)));
    await sessions[0]!.toolNames();
    await rested(switchboard, 'box');
    const pids = await Promise.all(
      sessions.map(async (session) => JSON.parse(await session.callText('whoami')).pid),
    );
    expect(new Set(pids).size).toBe(1);
    await witness.severalOf('box', 'start', 2);
    expect(witness.seenBy('box', 'start')).toHaveLength(2);
  });

  it('is started only after its old process has exited', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      box: { ...fixtureServer('ignores-stdin-end', witness.env('box')), idleStopMs },
    });
    const session = await RawSession.open(switchboard.url);
    await session.toolNames();
    const { pid: first } = await witness.sees('box', 'stdin end');
    const second = JSON.parse(await session.callText('whoami')).pid;
    await witness.severalOf('box', 'start', 2);
    const lives = witness.sightings.items.filter(({ saw }) => saw === 'start' || saw === 'end');
    expect(lives).toMatchObject([
      { saw: 'start', pid: first },
      { saw: 'end', pid: first },
      { saw: 'start', pid: second },
    ]);
  });

  it('is not stopped while a call is in flight, however long it takes', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      busy: { ...fixtureServer('reports-messages', witness.env('busy')), idleStopMs: 100 },
      clock: { ...fixtureServer('notes'), idleStopMs },
    });
    const session = await RawSession.open(switchboard.url);
    await session.toolNames();
    const held = session.callText('hold', { order: 'go on' });
    const isHeld = ({ params }: Sighting) => (params as { name?: string })?.name === 'hold';
    const { pid } = await witness.sees('busy', 'message', isHeld);
    // The other server is idle for longer than this one may be.
    await rested(switchboard, 'clock');
    expect(await serverOf(switchboard, 'busy')).toMatchObject({ state: 'ready', in_flight: 1 });
    witness.tell('busy', 'go on');
    expect(JSON.parse(await held).pid).toBe(pid);
    await witness.sees('busy', 'end', (sighting) => sighting.pid === pid);
  });

  it('is not stopped while a client is subscribed to one of its resources', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      followed: { ...fixtureServer('notes', witness.env('followed')), idleStopMs: 100 },
      clock: { ...fixtureServer('toolbox'), idleStopMs },
    });
    const follower = await RawSession.open(switchboard.url);
    const standing = await follower.listen();
    const uri = 'resource://followed/note://todo';
    expect(await follower.request('resources/subscribe', { uri })).toMatchObject({ result: {} });
    const sent = (method: string) => witness.sees('followed', 'message', (seen) => seen.method === method);
    const { pid } = await sent('resources/subscribe');
    await rested(switchboard, 'clock');
    const other = await RawSession.open(switchboard.url);
    await other.call('touch', { uri: 'note://todo' });
    await standing.message(({ method }) => method === 'notifications/resources/updated');
    expect(await sent('tools/call')).toMatchObject({ pid });

    await follower.request('resources/unsubscribe', { uri });
    await witness.sees('followed', 'end', (sighting) => sighting.pid === pid);
  });

  it('is stopped when the last subscribed client is gone', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      followed: { ...fixtureServer('notes', witness.env('followed')), idleStopMs },
    });
    const follower = await RawSession.open(switchboard.url);
    await follower.request('resources/subscribe', { uri: 'resource://followed/note://todo' });
    await follower.end();
    await rested(switchboard, 'followed');
    await witness.sees('followed', 'end');
  });

  it('over HTTP loses its session, and gets a new one with the next call', async () => {
    await using peer = await HttpPeer.start({ remote: () => false });
    await using backend = await HttpBackend.start('backend');
    await using events = await HttpBackend.start('events', { transport: 'sse' });
    await using switchboard = await startSwitchboard(
      {
        ...peer.configuration(),
        backend: { url: backend.url },
        events: { type: 'sse', url: events.url },
      },
      { idleStopMs },
    );
    const session = await RawSession.open(switchboard.url);
    const tools = await session.toolNames();
    for (const name of ['remote', 'backend', 'events']) await rested(switchboard, name);
    expect(await session.toolNames()).toEqual(tools);
    expect(await session.callText('greet')).toBe('hello');
    for (const name of ['backend', 'events']) {
      const answer = JSON.parse(await session.callText(`${name}__echo`, { text: 'awake' }));
      expect(answer).toMatchObject({ text: 'awake', name });
    }
    const handshakes = peer.seenBy('remote').filter(({ message }) => message?.method === 'initialize');
    expect(handshakes).toHaveLength(2);
  });

  it('keeps the isolated instances of clients, which hold session state', async () => {
    await using witness = await Witness.open();
    const own = {
      ...fixtureServer('reports-messages', witness.env('own')),
      isolation: 'session',
      idleStopMs,
    };
    await using switchboard = await startSwitchboard({ own });
    const session = await RawSession.open(switchboard.url);
    const { pid } = JSON.parse(await session.callText('whoami'));
    // The instance for discovery stops; that of the client keeps the server ready.
    await witness.sees('own', 'end', (sighting) => sighting.pid !== pid);
    expect(await serverOf(switchboard, 'own')).toMatchObject({ state: 'ready' });
    expect(JSON.parse(await session.callText('whoami')).pid).toBe(pid);
    await session.end();
    await witness.sees('own', 'end', (sighting) => sighting.pid === pid);
  });

  it('stops and restarts all of its replicas', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      many: { ...fixtureServer('reports-messages', witness.env('many')), replicas: 2, idleStopMs },
    });
    const session = await RawSession.open(switchboard.url);
    await session.toolNames();
    await witness.severalOf('many', 'end', 2);
    expect(await serverOf(switchboard, 'many')).toMatchObject({
      state: 'idle',
      replicas: [{ state: 'idle' }, { state: 'idle' }],
    });
    await session.callText('whoami');
    await witness.severalOf('many', 'start', 4);
  });
});

describe.concurrent('an edit of idleStopMs at run time', () => {
  const servers = (witness: Witness, more: object) => ({
    box: { ...fixtureServer('reports-messages', witness.env('box')), ...more },
  });

  it('stops a server without a limit before, without a restart', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard(servers(witness, {}));
    const session = await RawSession.open(switchboard.url);
    await session.callText('whoami');
    await switchboard.configure(servers(witness, { idleStopMs: 50 }));
    await rested(switchboard, 'box');
    await witness.sees('box', 'end');
    await witness.severalOf('box', 'start', 1);
    expect(witness.seenBy('box', 'start')).toHaveLength(1);
    const applied = await switchboard.event(({ event }) => event === 'configuration');
    expect(applied).toMatchObject({ started: [], changed: ['box'], stopped: [] });
  });

  it('to 0 keeps a server running', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      ...servers(witness, { idleStopMs: 2_000 }),
      clock: { ...fixtureServer('toolbox'), idleStopMs: 3_000 },
    });
    const session = await RawSession.open(switchboard.url);
    await session.toolNames();
    await switchboard.configure({
      ...servers(witness, {}),
      clock: { ...fixtureServer('toolbox'), idleStopMs: 3_000 },
    });
    await switchboard.event(({ event }) => event === 'configuration');
    await rested(switchboard, 'clock');
    expect(await serverOf(switchboard, 'box')).toMatchObject({ state: 'ready' });
    const { pid } = await witness.sees('box', 'start');
    expect(JSON.parse(await session.callText('whoami')).pid).toBe(pid);
  });
});
