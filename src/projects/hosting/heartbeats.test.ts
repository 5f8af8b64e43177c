import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SwitchboardError } from '../../errors.ts';
import { Heartbeat } from './heartbeats.ts';

const EVERY = 30_000;
const TIMEOUT = 10_000;

function beat(isBusy = () => false) {
  const pings: PromiseWithResolvers<void>[] = [];
  const changes: boolean[] = [];
  const heartbeat = new Heartbeat({
    everyMs: EVERY,
    timeoutMs: TIMEOUT,
    isBusy,
    ping() {
      const ping = Promise.withResolvers<void>();
      pings.push(ping);
      return ping.promise;
    },
    changed: (isResponsive) => changes.push(isResponsive),
  });
  return { heartbeat, pings, changes };
}

describe('the heartbeat', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

  it('reports nothing while a server responds in time', async () => {
    const { heartbeat, pings, changes } = beat();
    for (let count = 0; count < 3; count++) {
      await pass(EVERY);
      pings[count]!.resolve();
    }
    await pass(TIMEOUT);
    expect(pings).toHaveLength(3);
    expect(changes).toEqual([]);
    heartbeat.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('reports once that a server does not respond, and once that it does again', async () => {
    const { heartbeat, pings, changes } = beat();
    await pass(EVERY + TIMEOUT - 1);
    expect(changes).toEqual([]);
    await pass(1);
    expect(changes).toEqual([false]);
    await pass(EVERY * 3);
    expect(changes).toEqual([false]);
    pings.at(-1)!.resolve();
    await pass(0);
    expect(changes).toEqual([false, true]);
    heartbeat.stop();
  });

  it('accepts a late response as a sign of life', async () => {
    const { heartbeat, pings, changes } = beat();
    await pass(EVERY + TIMEOUT);
    pings[0]!.resolve();
    await pass(0);
    expect(changes).toEqual([false, true]);
    heartbeat.stop();
  });

  it('skips beats during a call', async () => {
    let isBusy = true;
    const { heartbeat, pings, changes } = beat(() => isBusy);
    await pass(EVERY * 3);
    expect(pings).toHaveLength(0);
    isBusy = false;
    await pass(EVERY);
    expect(pings).toHaveLength(1);
    expect(changes).toEqual([]);
    heartbeat.stop();
  });

  it('ignores a failed ping, unless it timed out', async () => {
    const { heartbeat, pings, changes } = beat();
    await pass(EVERY);
    pings[0]!.reject(new SwitchboardError('server_unavailable', 'The connection is gone.'));
    await pass(TIMEOUT);
    expect(changes).toEqual([]);
    await pass(EVERY - TIMEOUT);
    pings[1]!.reject(new SwitchboardError('call_timeout', 'No answer.'));
    await pass(0);
    expect(changes).toEqual([false]);
    heartbeat.stop();
  });

  it('ignores an old timeout of a server that has responded since', async () => {
    const { heartbeat, pings, changes } = beat();
    await pass(EVERY + TIMEOUT);
    await pass(EVERY - TIMEOUT);
    pings[1]!.resolve();
    await pass(0);
    pings[0]!.reject(new SwitchboardError('call_timeout', 'No answer.'));
    await pass(0);
    expect(changes).toEqual([false, true]);
    heartbeat.stop();
  });

  it('reports nothing after it was stopped', async () => {
    const { heartbeat, pings, changes } = beat();
    await pass(EVERY);
    heartbeat.stop();
    await pass(TIMEOUT * 2);
    pings[0]!.resolve();
    await pass(0);
    expect(changes).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
