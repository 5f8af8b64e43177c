import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import type { RecoveryPolicy, State } from './condition.ts';
import { Lifecycle } from './lifecycle.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const usual: RecoveryPolicy = {
  backoff: { firstMs: SECOND, maxMs: 30 * SECOND },
  breakerFailures: 3,
  breakerOpenMs: MINUTE,
};

const reason = new SwitchboardError('server_start_failed', 'Server "box" is not available: no', {
  data: { server: 'box' },
});

/** A lifecycle whose connects fail until `isWell` is set, and the times of its attempts. */
function failing(policy: RecoveryPolicy) {
  const tries: number[] = [];
  const states: State[] = [];
  const server = { isWell: false };
  const connect = () => {
    tries.push(Date.now());
    lifecycle.apply({ kind: 'starts' });
    if (!server.isWell) lifecycle.apply({ kind: 'connect failed', reason });
    else for (const kind of ['connected', 'ready'] as const) lifecycle.apply({ kind });
  };
  const lifecycle = new Lifecycle(policy, {
    changed: () => states.push(lifecycle.condition.state),
    due: connect,
  });
  connect();
  return { lifecycle, server, tries, states };
}

describe('the lifecycle of a connection', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 0 });
    vi.spyOn(Math, 'random').mockReturnValue(0);
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it('retries after growing delays, then every 60 s, without being asked', () => {
    const { tries, states } = failing(usual);
    vi.advanceTimersByTime(3 * SECOND);
    expect(tries).toEqual([0, SECOND, 3 * SECOND]);
    expect(states.at(-1)).toBe('breaker_open');
    vi.advanceTimersByTime(MINUTE - 1);
    expect(tries).toHaveLength(3);
    vi.advanceTimersByTime(1);
    expect(tries).toHaveLength(4);
    vi.advanceTimersByTime(10 * MINUTE);
    expect(tries).toHaveLength(14);
  });

  it('keeps a breaker open for 5 min if configured, and closes it with the first success', () => {
    const { lifecycle, server, tries } = failing({ ...usual, breakerOpenMs: 5 * MINUTE });
    vi.advanceTimersByTime(3 * SECOND + 5 * MINUTE - 1);
    expect(tries).toHaveLength(3);
    server.isWell = true;
    vi.advanceTimersByTime(1);
    expect(tries).toHaveLength(4);
    expect(lifecycle.condition).toMatchObject({ state: 'ready', failedConnects: 0, reason: undefined });
    vi.advanceTimersByTime(60 * MINUTE);
    expect(tries).toHaveLength(4);
  });

  it('waits at most the bound between two attempts', () => {
    const { tries } = failing({ ...usual, breakerFailures: 1_000 });
    vi.advanceTimersByTime(5 * MINUTE);
    const pauses = tries.slice(1).map((time, index) => (time - tries[index]!) / SECOND);
    expect(pauses.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 30, 30]);
    expect(new Set(pauses.slice(5))).toEqual(new Set([30]));
  });

  it('rejects calls with the time of the next retry, and only until then', () => {
    const { lifecycle, server } = failing({ ...usual, breakerFailures: 1 });
    vi.advanceTimersByTime(20 * SECOND);
    expect(lifecycle.refusal('box')).toMatchObject({
      code: 'server_unavailable',
      message: 'Server "box" is not available: no (breaker open, next try in 40 s)',
      data: { server: 'box', state: 'breaker_open', nextTry: new Date(MINUTE).toISOString() },
    });
    vi.advanceTimersByTime(35.5 * SECOND);
    expect(lifecycle.refusal('box')?.message).toContain('(breaker open, next try in 4.5 s)');
    server.isWell = true;
    vi.advanceTimersByTime(4.5 * SECOND);
    expect(lifecycle.refusal('box')).toBeUndefined();
  });

  it('allows the retry that it scheduled, even if the clock was set back', () => {
    const refusals: unknown[] = [];
    const lifecycle: Lifecycle = new Lifecycle(usual, {
      changed() {},
      due: () => refusals.push(lifecycle.notYet('box')),
    });
    lifecycle.apply({ kind: 'starts' });
    lifecycle.apply({ kind: 'connect failed', reason });
    vi.advanceTimersByTime(SECOND / 2);
    expect(lifecycle.notYet('box')).toBeDefined();
    vi.setSystemTime(-MINUTE);
    vi.advanceTimersByTime(SECOND / 2);
    expect(refusals).toEqual([undefined]);

    lifecycle.apply({ kind: 'starts' });
    lifecycle.apply({ kind: 'connect failed', reason });
    expect(lifecycle.notYet('box')).toBeDefined();
  });

  it('lets calls wait for a first start and for an immediate reconnect, but not for a retry', () => {
    const lifecycle = new Lifecycle(usual, { changed() {}, due() {} });
    const isRefused = (...kinds: ('starts' | 'connected' | 'ready' | 'connect failed' | 'lost')[]) =>
      kinds.map((kind) => {
        lifecycle.apply({ kind, reason, isThere: false });
        return lifecycle.refusal('box') !== undefined;
      });
    expect(isRefused('starts', 'connected', 'ready')).toEqual([false, false, false]);
    expect(isRefused('lost', 'starts')).toEqual([false, false]);
    expect(isRefused('connect failed', 'starts', 'connected', 'ready')).toEqual([true, true, true, false]);
    expect(isRefused('lost', 'starts')).toEqual([true, true]);
    expect(lifecycle.refusal('box')).toMatchObject({
      message: 'Server "box" is not available: no (connecting again for 0.0 s)',
      data: { server: 'box', state: 'starting' },
    });
  });

  it('checks a degraded server again at the scheduled time', () => {
    const dues: number[] = [];
    const lifecycle = new Lifecycle(usual, { changed() {}, due: () => dues.push(Date.now()) });
    for (const kind of ['starts', 'connected', 'ready'] as const) lifecycle.apply({ kind });
    lifecycle.apply({ kind: 'impaired', reason, nextTry: 30 * SECOND });
    expect(lifecycle.refusal('box')).toBeUndefined();
    lifecycle.apply({ kind: 'impaired', reason, nextTry: 45 * SECOND });
    vi.advanceTimersByTime(MINUTE);
    expect(dues).toEqual([45 * SECOND]);
  });

  it('is idle once the server is stopped', () => {
    const { lifecycle, tries, states } = failing(usual);
    lifecycle.apply({ kind: 'stops' });
    vi.advanceTimersByTime(60 * MINUTE);
    expect(tries).toHaveLength(1);
    expect(states.at(-1)).toBe('stopped');
    expect(vi.getTimerCount()).toBe(0);
    expect(lifecycle.refusal('box')?.message).toBe('Server "box" is not available: it was stopped');
  });

  it('reports a change once, and nothing that comes too late', () => {
    const { lifecycle, states } = failing(usual);
    expect(states).toEqual(['starting', 'backing_off']);
    for (const kind of ['connected', 'ready', 'rests'] as const) lifecycle.apply({ kind });
    expect(states).toEqual(['starting', 'backing_off']);
  });
});
