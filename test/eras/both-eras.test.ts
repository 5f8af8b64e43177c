import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { untilGone } from '../helpers/processes.ts';
import { type EventStream, RawSession } from '../helpers/raw-http.ts';
import { serverOf, serverOnce } from '../helpers/server-states.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { type Sighting, Witness } from '../helpers/witness.ts';
import { RawModern } from './raw-modern.ts';
import { startServer } from './servers.ts';

const listChanged = 'notifications/tools/list_changed';
const updated = 'notifications/resources/updated';
const names = [
  ...(['plain', 'grown', 'killed', 'locked', 'one', 'own', 'silent', 'brittle'] as const),
  ...(['old', 'new', 'rests', 'narrow'] as const),
];
type Name = (typeof names)[number];

const settings: Partial<Record<Name, object>> = {
  own: { isolation: 'session' },
  silent: { isolation: 'session' },
  brittle: { isolation: 'session' },
  old: { era: 'legacy' },
  new: { era: 'modern' },
  rests: { idleStopMs: 1_000 },
  narrow: { concurrency: 1 },
};

/** For servers that do not speak both eras. */
const kinds: Partial<Record<Name, string>> = { one: 'modern', silent: 'mute', brittle: 'brittle' };

describe('a server that speaks both eras', () => {
  const opened = new AsyncDisposableStack();
  let folder: string;
  let witness: Witness;
  let switchboard: RunningSwitchboard;
  let session: RawSession;
  let client: RawModern;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'both-eras-'));
    opened.defer(() => rm(folder, { recursive: true }));
    witness = opened.use(await Witness.open());
    const web = opened.use(await startServer('both', 'http', witness.env('web')));
    const servers = names.map((name) => {
      const lock = name === 'locked' ? { LOCK_FILE: join(folder, 'lock') } : {};
      const kind = kinds[name] ?? 'both';
      const server = fixtureServer('eras/speaks-given-era', { ...witness.env(name), ...lock }, kind);
      return [name, { ...server, ...settings[name] }];
    });
    switchboard = opened.use(
      await startSwitchboard(
        { ...Object.fromEntries(servers), web: web.target },
        { naming: 'always', backoffFirstMs: 10 },
      ),
    );
    session = await RawSession.open(switchboard.url);
    client = new RawModern(switchboard.url);
    await client.request('tools/list');
  });
  afterAll(() => opened.disposeAsync());

  let calls = 0;
  /** The pid of the process that got this client's call. */
  const calledIn = async (name: Name, by: Pick<RawSession, 'call'>): Promise<number> => {
    const which = `call ${++calls}`;
    expect((await by.call(`${name}__echo`, { which })).error).toBeUndefined();
    const isIt = ({ given }: Sighting) => (given as { which?: string } | undefined)?.which === which;
    return (await witness.sees(name, 'gets', isIt)).pid;
  };
  const started = (name: Name) => witness.seenBy(name, 'is').map(({ pid }) => pid);
  const startedFirst = async (name: Name) => (await witness.severalOf(name, 'is', 1)).map(({ pid }) => pid);
  const methodsIn = (name: Name, pid: number) =>
    witness.seenBy(name, 'gets').flatMap((sighting) => (sighting.pid === pid ? [sighting.method] : []));
  const told = (stream: EventStream, wanted: string) =>
    stream.messages.filter(({ method }) => method === wanted);

  it('has one process until a client of the other era calls, and then one per era', async () => {
    const first = await calledIn('plain', client);
    expect(started('plain')).toEqual([first]);
    const second = await calledIn('plain', session);
    expect(started('plain')).toEqual([first, second]);
    expect(methodsIn('plain', second)[0]).toBe('initialize');
    expect(methodsIn('plain', first)).not.toContain('initialize');
    expect(await calledIn('plain', client)).toBe(first);
    expect(await calledIn('plain', session)).toBe(second);
    expect(started('plain')).toHaveLength(2);
    expect(await serverOf(switchboard, 'plain')).toMatchObject({ state: 'ready', restarts: 0 });
  });

  it('is not restarted for every call if it turns out to speak one era', async () => {
    const [first] = await startedFirst('one');
    for (const _ of [1, 2, 3]) expect(await calledIn('one', session)).toBe(first);
    expect(started('one')).toHaveLength(2);
    await untilGone(started('one')[1]!);
    expect(await serverOf(switchboard, 'one')).toMatchObject({ state: 'ready' });
  });

  it('serves both eras from one process if a second one cannot run, and logs it once', async () => {
    const [first] = await startedFirst('locked');
    for (const by of [session, session, client, session]) expect(await calledIn('locked', by)).toBe(first);
    expect((await readFile(join(folder, 'lock'), 'utf8')).trim().split('\n')).toHaveLength(2);
    const answer = await fetch(`${switchboard.baseUrl}/api/v1/projects/default/servers/locked/logs`);
    expect((await answer.text()).match(/legacy clients use the modern connection/g)).toHaveLength(1);
    expect(await serverOf(switchboard, 'locked')).toMatchObject({ state: 'ready' });
  });

  it('continues in one era when its process for the other is killed', async () => {
    const [first, second] = [await calledIn('killed', client), await calledIn('killed', session)];
    process.kill(second, 'SIGKILL');
    await witness.severalOf('killed', 'is', 3);
    expect(await calledIn('killed', client)).toBe(first);
    const third = await calledIn('killed', session);
    expect(methodsIn('killed', third)[0]).toBe('initialize');
    process.kill(first, 'SIGKILL');
    await witness.severalOf('killed', 'is', 4);
    expect(await calledIn('killed', session)).toBe(third);
    const fourth = await calledIn('killed', client);
    expect([first, second, third]).not.toContain(fourth);
    expect(await calledIn('killed', session)).toBe(third);
    expect(started('killed')).toHaveLength(4);
    expect(await serverOnce(switchboard, 'killed', ({ state }) => state === 'ready')).toMatchObject({
      restarts: 2,
    });
  });

  it('over stdio merges the offers of both processes, and announces a change once', async () => {
    const session = await RawSession.open(switchboard.url);
    const standing = await session.listen();
    const { stream: listening } = await client.listen({ toolsListChanged: true });
    const heard = (stream: EventStream, times: number) =>
      stream.events.several(times, ({ message }) => message?.method === listChanged);
    // Only its legacy process changes its list.
    for (const times of [1, 2]) {
      const grown = await session.callText('grown__grow');
      await Promise.all([heard(standing, times), heard(listening, times)]);
      expect(await session.toolNames()).toContain(`grown__${grown}`);
      expect(await session.callText(`grown__${grown}`)).toBe(`I am ${grown}`);
    }
    expect([told(standing, listChanged), told(listening, listChanged)].map((all) => all.length)).toEqual([
      2, 2,
    ]);
    await Promise.all([standing.cut(), listening.cut()]);
  });

  it('over HTTP announces a change in both eras, and each client gets it once', async () => {
    const session = await RawSession.open(switchboard.url);
    const standing = await session.listen();
    const { stream: listening } = await client.listen({
      toolsListChanged: true,
      resourceSubscriptions: ['resource://web/test://note'],
    });
    await session.callText('web__echo');
    await session.request('resources/subscribe', { uri: 'resource://web/test://note' });
    const streams = [standing, listening];
    const heard = (wanted: string, times: number) =>
      Promise.all(
        streams.map((stream) => stream.events.several(times, ({ message }) => message?.method === wanted)),
      );
    for (const times of [1, 2, 3]) {
      const grown = await session.callText('web__grow');
      await heard(listChanged, times);
      expect(await session.toolNames()).toContain(`web__${grown}`);
      await session.callText('web__touch', { uri: 'test://note' });
      await heard(updated, times);
    }
    for (const stream of streams) {
      expect(told(stream, listChanged)).toHaveLength(3);
      expect(told(stream, updated)).toHaveLength(3);
    }
    await Promise.all(streams.map((stream) => stream.cut()));
  });

  it('gives a client an isolated instance in the era of that client ("isolation": "session")', async () => {
    const pid = await calledIn('own', session);
    expect(methodsIn('own', pid)[0]).toBe('initialize');
    const modern = await calledIn('own', client.as({ headers: { 'x-switchboard-session': 'me' } }));
    expect(methodsIn('own', modern)[0]).toBe('server/discover');
    // One for discovery, and one per client.
    expect(started('own')).toHaveLength(3);
  });

  it.each(['silent', 'brittle'] as const)(
    'gives a client an isolated instance if it speaks only the modern era (%s)',
    async (name) => {
      const pid = await calledIn(name, session);
      expect(methodsIn(name, pid)[0]).toBe('server/discover');
      const other = await calledIn(name, await RawSession.open(switchboard.url));
      // Only the first client was tried in its own era.
      expect(started(name).slice(1)).toEqual([expect.any(Number), pid, other]);
    },
  );

  it.each([
    ['old', 'initialize'],
    ['new', 'server/discover'],
  ] as const)('connects in one era only if its configuration says so (%s)', async (name, first) => {
    const [pid] = await startedFirst(name);
    for (const by of [session, client]) expect(await calledIn(name, by)).toBe(pid);
    expect(methodsIn(name, pid!)[0]).toBe(first);
    expect(started(name)).toHaveLength(1);
  });

  it('stops in both eras when idle, and restarts in the one that is called', async () => {
    await client.request('tools/list');
    const both = [await calledIn('rests', client), await calledIn('rests', session)];
    await Promise.all(both.map(untilGone));
    expect(await serverOnce(switchboard, 'rests', ({ state }) => state === 'idle')).toMatchObject({
      error: null,
    });
    const before = started('rests').length;
    const third = await calledIn('rests', session);
    expect(methodsIn('rests', third)[0]).toBe('initialize');
    expect(started('rests')).toHaveLength(before + 1);
  });

  it('shares its concurrency limit between the eras', async () => {
    await Promise.all([calledIn('narrow', client), calledIn('narrow', session)]);
    const waiting = session.call('narrow__wait', { key: 'slot' });
    await witness.sees('narrow', 'waiting');
    const next = calledIn('narrow', client);
    const view = await serverOnce(switchboard, 'narrow', ({ queued }) => queued === 1);
    expect(view).toMatchObject({ in_flight: 1, queued: 1, replicas: [{ in_flight: 1, queued: 1 }] });
    process.kill(started('narrow')[1]!, 'SIGKILL');
    expect((await waiting).error).toBeDefined();
    expect(await next).toBe(started('narrow')[0]);
  });

  it('leaves no process behind', async () => {
    await switchboard.stop();
    for (const name of names) await Promise.all(started(name).map(untilGone));
  });
});
