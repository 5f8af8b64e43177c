import { describe, expect, it } from 'vitest';
import { connectHttp, toolNamesOnce } from '../helpers/clients.ts';
import { callWithin } from '../helpers/deadlines.ts';
import { answerer, answerers, startPool } from '../helpers/pool.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { type Answerer, allReady, nextState, serverOf } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

describe.concurrent('an unavailable server of a group', () => {
  it('is skipped: a call that it cannot have received goes to another, once [G6]', async () => {
    await using pool = await startPool({ one: {}, two: {}, three: {} });
    const { backends, session } = pool;
    await backends.one!.goAway();
    await backends.two!.goAway();
    const keys = Array.from({ length: 9 }, (_, index) => `key ${index}`);
    expect(await answerers(9, (index) => session.call('count', { key: keys[index] }))).toEqual({ three: 9 });
    for (const key of keys) {
      expect(Object.values(backends).map((backend) => backend.executionsOf(key))).toEqual([0, 0, 1]);
    }
  });

  it('fails a call that it may have executed, unless the tool is idempotent [G6]', async () => {
    await using pool = await startPool({ one: {}, two: {} }, { ejectAfter: 0 });
    const { backends, session } = pool;
    backends.one!.failWith(500);
    expect(await answerers(6, () => session.call('whoami'))).toEqual({ two: 6 });
    const answers = [await session.call('count', { key: 'a' }), await session.call('count', { key: 'b' })];
    const errors = answers.filter(({ error }) => error !== undefined);
    expect(errors).toMatchObject([
      { error: { data: { server: 'one' }, message: expect.stringContaining('500') } },
    ]);
    expect(backends.two!.executionsOf('a') + backends.two!.executionsOf('b')).toBe(1);
  });

  it.each([503, 429])(
    'rejects a call with HTTP %i: the call goes to another, whatever the tool [G6]',
    async (status) => {
      await using pool = await startPool({ one: {}, two: {}, three: {} }, { ejectAfter: 0 });
      const { backends, session } = pool;
      backends.one!.failWith(status);
      const keys = Array.from({ length: 9 }, (_, index) => `key ${index}`);
      const answered = await answerers(9, (index) => session.call('count', { key: keys[index] }));
      expect(Object.values(answered).reduce((sum, count) => sum + count)).toBe(9);
      expect(answered).not.toHaveProperty('one');
      for (const key of keys)
        expect(backends.two!.executionsOf(key) + backends.three!.executionsOf(key)).toBe(1);
    },
  );

  it('that lost the session still gets the call, once [G6]', async () => {
    await using pool = await startPool({ one: {}, two: {} });
    const { backends, session } = pool;
    for (const backend of Object.values(backends)) backend.forgetSessions();
    for (const key of ['a', 'b', 'c', 'd']) {
      answerer(await session.call('count', { key }));
      expect(backends.one!.executionsOf(key) + backends.two!.executionsOf(key)).toBe(1);
    }
  });

  it('that never started does not affect calls that others can take [G6]', async () => {
    await using switchboard = await startSwitchboard({
      dying: { ...fixtureServer('fails-to-start'), group: 'pool' },
      missing: { command: '/there/is/no/such/program', group: 'pool' },
      well: { ...fixtureServer('answers-after-cancel'), group: 'pool' },
    });
    const session = await RawSession.open(switchboard.url);
    expect(await answerers(6, () => session.call('count', { key: 'a' }))).toEqual({
      'answers-after-cancel': 6,
    });
    expect(await session.toolNames()).toContain('echo');
  });

  it('that is killed right before a call does not affect it either [G6]', async () => {
    await using switchboard = await startSwitchboard({
      box: { ...fixtureServer('answers-after-cancel'), replicas: 2, startup: 'parallel' },
    });
    await allReady(switchboard, { box: 2 });
    const session = await RawSession.open(switchboard.url);
    const whoami = async () => JSON.parse(await session.callText('whoami')) as Answerer;
    const [one, other] = [await whoami(), await whoami()];
    process.kill(one.pid, 'SIGKILL');
    const { pid } = await whoami();
    expect(pid).not.toBe(one.pid);
    expect((await whoami()).name).toBe('answers-after-cancel');
    expect(other.pid).not.toBe(one.pid);
  });
});

it.concurrent('short client timeouts drive no server out of its group [G4]', async () => {
  await using pool = await startPool({ one: {}, two: {} }, { ejectAfter: 2 });
  const { session, switchboard } = pool;
  for (let call = 0; call < 4; call++) {
    expect(await callWithin(session, 20, 'one__hang')).toMatchObject({
      error: { data: { code: 'call_timeout', server: 'one' } },
    });
  }
  expect(await serverOf(switchboard, 'one')).toMatchObject({ state: 'ready', error: null });
  expect(await answerers(4, () => session.call('whoami'))).toEqual({ one: 2, two: 2 });
});

it.concurrent('a server that hangs is skipped, even if only client timeouts ended its calls [G4]', async () => {
  await using switchboard = await startSwitchboard(
    {
      one: {
        ...fixtureServer('answers-after-cancel', { FIXTURE_NAME: 'one' }),
        group: 'pool',
        startup: 'parallel',
      },
      two: {
        ...fixtureServer('answers-after-cancel', { FIXTURE_NAME: 'two' }),
        group: 'pool',
        startup: 'parallel',
      },
    },
    { timeoutMs: 3_600_000, ejectAfter: 1, ejectMs: 3_600_000 },
  );
  await allReady(switchboard, { one: 1, two: 1 });
  const session = await RawSession.open(switchboard.url);
  const { pid } = JSON.parse(await session.callText('one__whoami')) as Answerer;
  process.kill(pid, 'SIGSTOP');
  const ejected = nextState(switchboard, 'one', 'degraded');
  expect(await callWithin(session, 5_000, 'one__whoami')).toMatchObject({
    error: { data: { code: 'call_timeout', server: 'one' } },
  });
  await ejected;
  expect(await answerers(4, () => session.call('whoami'))).toEqual({ two: 4 });
  process.kill(pid, 'SIGCONT');
});

describe.concurrent('a group without an available server', () => {
  it('fails at once, with the error and the retry time of each server, and recovers [G9]', async () => {
    await using pool = await startPool({ one: {}, two: {} }, { breakerFailures: 2, breakerOpenMs: 3_000 });
    const { backends, session, switchboard } = pool;
    const open = Promise.all([
      nextState(switchboard, 'one', 'breaker_open'),
      nextState(switchboard, 'two', 'breaker_open'),
    ]);
    await Promise.all(Object.values(backends).map((backend) => backend.goAway()));
    // Calls detect the loss.
    for (let call = 0; call < 4; call++) await session.call('whoami');
    await open;
    const { error } = await session.call('count', { key: 'none' });
    const known = (server: string) => ({
      server,
      replica: 1,
      state: 'breaker_open',
      reason: expect.stringContaining('ECONNREFUSED'),
      nextTry: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
    expect(error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(
        /^No backends available in group "pool": one\/1 is breaker open, next try at \S+ \(.*\); two\/1 is breaker open, next try at/,
      ),
      data: { code: 'no_backends', group: 'pool', backends: [known('one'), known('two')] },
    });

    const back = [nextState(switchboard, 'one', 'ready'), nextState(switchboard, 'two', 'ready')];
    await Promise.all(Object.values(backends).map((backend) => backend.comeBack()));
    await Promise.all(back);
    expect(await answerers(4, () => session.call('whoami'))).toEqual({ one: 2, two: 2 });
    for (const backend of Object.values(backends)) expect(backend.executionsOf('none')).toBe(0);
  });

  it('reports the response of each server that rejected the call [G9]', async () => {
    await using pool = await startPool({ one: {}, two: {} });
    const { backends, session } = pool;
    backends.one!.failWith(503, { 'retry-after': '120' });
    backends.two!.failWith(429);
    const { error } = await session.call('count', { key: 'none' });
    const answered = (server: string, what: string) => ({
      server,
      replica: 1,
      state: 'ready',
      reason: expect.stringContaining(what),
    });
    expect(error).toMatchObject({
      message: expect.stringMatching(
        /^No backends available in group "pool": one\/1 .*HTTP 503.*; two\/1 .*HTTP 429/,
      ),
      data: {
        code: 'no_backends',
        backends: [
          answered('one', 'responded with HTTP 503. It asks to retry in 120 s.'),
          answered('two', 'responded with HTTP 429.'),
        ],
        retryAfterMs: 120_000,
      },
    });
    backends.two!.failWith(429, { 'retry-after': '7' });
    expect((await session.call('count', { key: 'none' })).error).toMatchObject({
      data: { code: 'no_backends', retryAfterMs: 7_000 },
    });
    for (const backend of Object.values(backends)) backend.behave();
    answerer(await session.call('count', { key: 'none' }));
    expect(backends.one!.executionsOf('none') + backends.two!.executionsOf('none')).toBe(1);
  });

  it('is still listed [G9]', async () => {
    await using pool = await startPool({ one: {}, two: {} });
    const before = await pool.session.toolNames();
    await Promise.all(Object.values(pool.backends).map((backend) => backend.goAway()));
    expect(await pool.session.call('whoami')).toMatchObject({ error: { data: { code: 'no_backends' } } });
    expect(await pool.session.toolNames()).toEqual(before);
  });
});

describe.concurrent('calls of a group', () => {
  it('go only to the servers that offer the tool [G4]', async () => {
    await using switchboard = await startSwitchboard({
      hanging: { ...fixtureServer('hangs-in-call'), group: 'pool' },
      workhorse: { ...fixtureServer('answers-after-cancel'), group: 'pool' },
      toolbox: { ...fixtureServer('toolbox'), group: 'pool' },
    });
    const session = await RawSession.open(switchboard.url);
    expect(await session.toolNames()).toEqual(expect.arrayContaining(['hang', 'later', 'pid', 'echo']));
    expect(await answerers(6, () => session.call('whoami'))).toEqual({
      'hangs-in-call': 3,
      'answers-after-cancel': 3,
    });
    const pids = new Set<string>();
    for (let call = 0; call < 5; call++) pids.add(await session.callText('pid'));
    expect(pids.size).toBe(1);
  });

  it('go only to the replica that offers the tool [G4]', async () => {
    await using witness = await Witness.open();
    await using switchboard = await startSwitchboard({
      box: { ...fixtureServer('toolbox', witness.env('box')), replicas: 3, startup: 'parallel' },
    });
    await allReady(switchboard, { box: 3 });
    await using connected = await connectHttp(switchboard.url);
    const { client } = connected;
    await client.callTool({ name: 'add', arguments: { name: 'special' } });
    await toolNamesOnce(connected, (names) => names.includes('special'));
    for (let call = 0; call < 6; call++) await client.callTool({ name: 'special' });
    const calls = await witness.severalOf('box', 'tools/call', 7);
    const [added, ...special] = calls.map(({ pid }) => pid);
    expect(special).toEqual(Array(6).fill(added));
  });

  it('by the name of a server go only to that server, whatever its state [G2, G4]', async () => {
    await using pool = await startPool({ one: {}, two: {} });
    const { backends, session } = pool;
    expect(await answerers(5, () => session.call('two__whoami'))).toEqual({ two: 5 });
    expect(await answerers(4, () => session.call('pool__whoami'))).toEqual({ one: 2, two: 2 });
    await backends.two!.goAway();
    expect(await session.call('two__whoami')).toMatchObject({
      error: { message: expect.stringContaining('Server "two"'), data: { server: 'two' } },
    });
    expect(await answerers(4, () => session.call('whoami'))).toEqual({ one: 4 });
    expect(await session.toolNames()).not.toContain('two__whoami');
  });
});
