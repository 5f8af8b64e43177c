import { describe, expect, it } from 'vitest';
import { answerers, startPool } from '../helpers/pool.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { type Answerer, allReady, nextState, serverOf } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

async function whoami(session: RawSession, tool = 'whoami'): Promise<Answerer> {
  return JSON.parse(await session.callText(tool)) as Answerer;
}

/** Two servers in a group, with a separate process for each client. */
async function startIsolated() {
  const member = (name: string) => ({
    ...fixtureServer('hangs-in-call', { FIXTURE_NAME: name }),
    group: 'pool',
    isolation: 'session',
    startup: 'parallel',
  });
  const switchboard = await startSwitchboard({ one: member('one'), two: member('two') });
  await allReady(switchboard, { one: 1, two: 1 });
  return switchboard;
}

describe.concurrent('a session in a group with isolation', () => {
  it('stays on its server and in its process, and two sessions are spread', async () => {
    await using switchboard = await startIsolated();
    const sessions = [await RawSession.open(switchboard.url), await RawSession.open(switchboard.url)];
    const homes = [await whoami(sessions[0]!), await whoami(sessions[1]!)];
    expect(homes.map(({ name }) => name).toSorted()).toEqual(['one', 'two']);
    for (let call = 0; call < 4; call++) {
      for (const [index, session] of sessions.entries()) expect(await whoami(session)).toEqual(homes[index]);
    }
  });

  it('keeps its server when it calls another by name, or a tool that only another one has', async () => {
    await using switchboard = await startIsolated();
    const session = await RawSession.open(switchboard.url);
    const home = await whoami(session);
    const other = home.name === 'one' ? 'two' : 'one';
    const away = await whoami(session, `${other}__whoami`);
    expect(away.name).toBe(other);
    expect(await whoami(session)).toEqual(home);
    expect(await whoami(session, `${other}__whoami`)).toEqual(away);
    expect(await whoami(session)).toEqual(home);
  });

  it('continues with a new process when its own dies, and no other session notices', async () => {
    await using switchboard = await startIsolated();
    const [session, other] = [await RawSession.open(switchboard.url), await RawSession.open(switchboard.url)];
    const [home, ofOther] = [await whoami(session), await whoami(other)];
    process.kill(home.pid, 'SIGKILL');
    const after = await whoami(session);
    expect(after.pid).not.toBe(home.pid);
    expect(await whoami(session)).toEqual(after);
    expect(await whoami(other)).toEqual(ofOther);
  });
});

describe.concurrent('a server of a group that fails every call', () => {
  it('is skipped: it is degraded, shows why and until when, and others take its calls', async () => {
    await using pool = await startPool({ one: {}, two: {}, three: {} }, { ejectAfter: 3, ejectMs: 60_000 });
    const { backends, session, switchboard } = pool;
    const degraded = nextState(switchboard, 'two', 'degraded');
    backends.two!.failWith(500);
    // Idempotent calls are retried on the others meanwhile.
    expect(await answerers(12, () => session.call('whoami'))).not.toHaveProperty('two');
    await degraded;
    const { state, error, next_try } = await serverOf(switchboard, 'two');
    expect({ state, error }).toEqual({
      state: 'degraded',
      error: expect.stringMatching(/^3 calls in a row failed: .*500/),
    });
    expect(Date.parse(next_try!)).toBeGreaterThan(Date.now());

    const keys = Array.from({ length: 8 }, (_, index) => `key ${index}`);
    expect(await answerers(8, (index) => session.call('count', { key: keys[index] }))).toEqual({
      one: 4,
      three: 4,
    });
    expect((await serverOf(switchboard, 'one')).state).toBe('ready');
  });

  it('is used again later', async () => {
    await using pool = await startPool({ one: {}, two: {} }, { ejectAfter: 2, ejectMs: 300 });
    const { backends, session, switchboard } = pool;
    const degraded = nextState(switchboard, 'two', 'degraded');
    const back = nextState(switchboard, 'two', 'ready');
    backends.two!.failCalls(2, 500);
    await answerers(4, () => session.call('whoami'));
    await degraded;
    await back;
    expect(await answerers(6, () => session.call('whoami'))).toEqual({ one: 3, two: 3 });
  });

  it('is still called if all of them fail', async () => {
    await using pool = await startPool({ one: {}, two: {} }, { ejectAfter: 1, ejectMs: 60_000 });
    const { backends, session, switchboard } = pool;
    const degraded = ['one', 'two'].map((name) => nextState(switchboard, name, 'degraded'));
    for (const backend of Object.values(backends)) backend.failWith(500);
    for (let call = 0; call < 2; call++) {
      expect(await session.call('whoami')).toMatchObject({
        error: { message: expect.stringContaining('500') },
      });
    }
    await Promise.all(degraded);
    for (const backend of Object.values(backends)) backend.behave();
    const back = nextState(switchboard, 'one', 'ready');
    await answerers(4, () => session.call('whoami'));
    await back;
  });
});

it.concurrent('a failed instance of one client shows in the state of the server', async () => {
  await using switchboard = await startSwitchboard({
    box: { ...fixtureServer('crashes-in-call'), isolation: 'session' },
  });
  const session = await RawSession.open(switchboard.url);
  await session.toolNames();
  await switchboard.event(({ name, state }) => name === 'box' && state === 'ready');
  const isDegraded = ({ name, state }: Record<string, unknown>) => name === 'box' && state === 'degraded';
  const degraded = switchboard.event(isDegraded);
  // One crash is repaired at once; repeated crashes are a failure.
  for (let time = 0; time < 2; time++) await session.call('crash');
  expect(await degraded).toMatchObject({
    error: expect.stringMatching(/^Server "box" is not available: The server process/),
    next_try: expect.any(String),
  });
});
