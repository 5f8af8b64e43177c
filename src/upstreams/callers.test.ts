import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Callers } from './callers.ts';
import type { Client, PendingRequest } from './request.ts';

const ada = { name: 'Ada', era: 'legacy' } as const;
const grace = { name: 'Grace', era: 'legacy' } as const;

function callOf(client: Client | undefined): PendingRequest {
  return { client, onResponse() {}, onError() {} };
}

describe('the audience of an unaddressed server message', () => {
  it('is everyone while no client was served, whatever our own requests', () => {
    expect(new Callers().audience([])).toEqual({ kind: 'everybody' });
    expect(new Callers().audience([callOf(undefined)])).toEqual({ kind: 'everybody' });
  });

  it('is the call in flight, or several of the same client', () => {
    const callers = new Callers();
    callers.called(ada);
    const [first, second] = [callOf(ada), callOf(ada)];
    expect(callers.audience([first])).toEqual({ kind: 'calls', calls: [first] });
    expect(callers.audience([first, callOf(undefined)])).toEqual({ kind: 'calls', calls: [first] });
    expect(callers.audience([first, second])).toMatchObject({
      kind: 'calls',
      calls: [{ client: ada }, { client: ada }],
    });
  });

  it('is the only client that ever called, even between its calls', () => {
    const callers = new Callers();
    callers.called(ada);
    callers.called(ada);
    expect(callers.audience([])).toEqual({ kind: 'client', client: ada });
  });

  it('is unclear between calls after two clients have called, and while both do', () => {
    const callers = new Callers();
    callers.called(ada);
    callers.called(grace);
    expect(callers.audience([])).toEqual({ kind: 'unclear' });
    expect(callers.audience([callOf(ada), callOf(grace)])).toEqual({ kind: 'unclear' });
    callers.called(ada);
    expect(callers.audience([])).toEqual({ kind: 'unclear' });
  });

  it('is the only call in flight, even if others have called before', () => {
    const callers = new Callers();
    callers.called(ada);
    callers.called(grace);
    const call = callOf(grace);
    expect(callers.audience([call])).toEqual({ kind: 'calls', calls: [call] });
  });
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

it('a cancelled call does not keep its client in memory, and still counts as another client', async () => {
  const callers = new Callers();
  const cancel = () => {
    const client = { era: 'modern', request: Buffer.alloc(1) } as const;
    callers.called(client);
    callers.cancelled(1, client);
    return new WeakRef(client);
  };
  const client = cancel();
  await turn();
  collectGarbage();
  expect(client.deref()).toBeUndefined();
  expect(callers.audience([])).toEqual({ kind: 'unclear' });
  expect(callers.audience([callOf(ada)])).toEqual({ kind: 'unclear' });
});

describe('a cancelled call', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('makes the audience unclear, alone and next to a call of another client', () => {
    const callers = new Callers();
    callers.called(ada);
    callers.cancelled(1, ada);
    expect(callers.audience([])).toEqual({ kind: 'unclear' });
    callers.called(grace);
    expect(callers.audience([callOf(grace)])).toEqual({ kind: 'unclear' });
  });

  it('does not matter next to another call of the same client', () => {
    const callers = new Callers();
    callers.called(ada);
    callers.cancelled(1, ada);
    const call = callOf(ada);
    expect(callers.audience([call])).toEqual({ kind: 'calls', calls: [call] });
  });

  it('ends when the server responds anyway', () => {
    const callers = new Callers();
    callers.called(ada);
    callers.called(grace);
    callers.cancelled(1, ada);
    expect(callers.respondedLate(2)).toBe(false);
    expect(callers.respondedLate(1)).toBe(true);
    expect(callers.respondedLate(1)).toBe(false);
    const call = callOf(grace);
    expect(callers.audience([call])).toEqual({ kind: 'calls', calls: [call] });
  });

  it('is forgotten after half a minute', () => {
    const callers = new Callers();
    callers.called(ada);
    callers.cancelled(1, ada);
    const call = callOf(grace);
    vi.setSystemTime(29_999);
    expect(callers.audience([call])).toEqual({ kind: 'unclear' });
    vi.setSystemTime(30_000);
    expect(callers.audience([call])).toEqual({ kind: 'calls', calls: [call] });
  });

  it('is forgotten on time, whichever others were cancelled before or after it', () => {
    const callers = new Callers();
    callers.called(ada);
    callers.cancelled(1, ada);
    vi.setSystemTime(10_000);
    callers.cancelled(2, grace);
    callers.cancelled(3, ada);
    callers.cancelled(4, ada);
    vi.setSystemTime(30_000);
    const [ofAda, ofGrace] = [callOf(ada), callOf(grace)];
    expect(callers.audience([ofAda])).toEqual({ kind: 'unclear' });
    expect([1, 2].map((id) => callers.respondedLate(id))).toEqual([false, true]);
    expect(callers.audience([ofAda])).toEqual({ kind: 'calls', calls: [ofAda] });
    expect(callers.audience([ofGrace])).toEqual({ kind: 'unclear' });
    vi.setSystemTime(40_000);
    expect(callers.audience([ofGrace])).toEqual({ kind: 'calls', calls: [ofGrace] });
  });
});
