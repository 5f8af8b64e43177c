import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byteLength } from '../../protocol/jsonrpc.ts';
import { Replay, ReplayBudget } from './replay.ts';
import type { KeptEvent } from './replay-block.ts';

const MEGABYTE = 2 ** 20;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function event(stream: number, sequence: number, text: string): KeptEvent {
  return { stream, sequence, message: [Buffer.from(text)] };
}

function textsOf(replay: Replay, stream: number): string[] {
  return replay.after(stream, 0).map(({ message }) => Buffer.concat([...message]).toString());
}

/** The memory in use. Unreferenced buffers are counted until the second collection. */
async function bytesInUse(): Promise<number> {
  for (let time = 0; time < 3; time++) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe('replay events', () => {
  it('take little more memory than their bytes, however they were read', async () => {
    const SESSIONS = 100;
    const budget = new ReplayBudget(64 * MEGABYTE, 60_000);
    const before = await bytesInUse();
    const sessions = Array.from({ length: SESSIONS }, () => new Replay(budget));
    for (const replay of sessions) {
      for (let sequence = 1; sequence <= 1_500; sequence++) {
        // As in production: a slice of a large read, and spliced bytes.
        const read = sequence % 100 === 1 ? Buffer.alloc(64 * 1024, 'x') : Buffer.from('x'.repeat(90));
        replay.add({ stream: 1, sequence, message: [read.subarray(0, 90), Buffer.from('0123456789')] });
      }
    }
    const perSession = ((await bytesInUse()) - before) / SESSIONS;
    expect(sessions.map((replay) => replay.after(1, 0).length)).toEqual(sessions.map(() => 1_000));
    expect(perSession).toBeLessThan(200_000);
    // The budget counts the memory that is really used.
    expect(budget.heldBytes / SESSIONS).toBeGreaterThan(0.8 * perSession);
    for (const replay of sessions) replay.close();
    expect(budget.heldBytes).toBe(0);
  });

  it('are not copied if they are large, and pin nothing else', () => {
    const replay = new Replay(new ReplayBudget(64 * MEGABYTE, 60_000));
    const read = Buffer.alloc(64 * 1024, 'x');
    const whole = Buffer.allocUnsafeSlow(MEGABYTE).fill('y');
    replay.add({ stream: 1, sequence: 1, message: [read.subarray(10, 20), whole] });
    const [kept] = replay.after(1, 0);
    expect(Buffer.concat([...kept!.message]).equals(Buffer.concat([read.subarray(10, 20), whole]))).toBe(
      true,
    );
    expect(kept!.message[0]!.buffer.byteLength).toBe(10);
    expect(kept!.message[1]).toBe(whole);
  });

  it('match those of a plain list, for any sequence of changes', () => {
    const size = fc.oneof(fc.nat(300), fc.constantFrom(4_000, 9_000, 70_000, 600_000, 1_200_000));
    const step = fc.record({
      stream: fc.nat(4),
      size,
      times: fc.constantFrom(1, 1, 3, 40, 700),
      ends: fc.nat(9),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const replay = new Replay(new ReplayBudget(64 * MEGABYTE, 0));
        let model: KeptEvent[] = [];
        let sequence = 0;
        for (const { stream, size: length, times, ends } of steps) {
          const bytes = Buffer.alloc(length, String(stream));
          for (let time = 0; time < (length > 300 ? 1 : times); time++) {
            const added = {
              stream,
              sequence: ++sequence,
              message: [bytes.subarray(0, 50), bytes.subarray(50)],
            };
            replay.add(added);
            model.push(added);
            model = withinLimits(model);
          }
          if (ends > 4) continue;
          replay.finish(ends);
          replay.dropFinished();
          model = model.filter((kept) => kept.stream !== ends);
        }
        for (let stream = 0; stream <= 4; stream++) {
          expect(described(replay.after(stream, 0))).toEqual(
            described(model.filter((kept) => kept.stream === stream)),
          );
        }
      }),
      { numRuns: 25 },
    );
  });
});

it('drops only events that the client received long ago', () => {
  const budget = new ReplayBudget(64 * MEGABYTE, 60_000);
  const replay = new Replay(budget);
  for (let sequence = 1; sequence <= 900; sequence++) {
    replay.add(event(0, sequence, `standing ${sequence}`));
    if (sequence % 100 === 0) replay.add(event(7, sequence, `other ${sequence}`));
  }
  const before = budget.heldBytes;
  replay.dropUpTo(0, 890);
  replay.dropUpTo(0, 890);
  expect(textsOf(replay, 0)).toEqual(Array.from({ length: 10 }, (_, index) => `standing ${891 + index}`));
  expect(textsOf(replay, 7)).toHaveLength(9);
  expect(budget.heldBytes).toBeLessThan(before / 4);
});

describe('the replay budget of all sessions', () => {
  it('evicts the oldest events first', () => {
    const budget = new ReplayBudget(MEGABYTE, 60_000);
    const sessions = Array.from({ length: 300 }, () => new Replay(budget));
    let most = 0;
    for (const replay of sessions) {
      for (let sequence = 1; sequence <= 100; sequence++) {
        replay.add(event(1, sequence, 'x'.repeat(100)));
        most = Math.max(most, budget.heldBytes);
      }
    }
    expect(most).toBeLessThanOrEqual(MEGABYTE);
    const counts = sessions.map((replay) => replay.after(1, 0).length);
    const firstKept = counts.findIndex((count) => count > 0);
    expect(firstKept).toBeGreaterThan(0);
    // 100 events of 120 bytes each: at least three quarters of the budget are usable.
    expect(firstKept).toBeLessThan(300 - (0.75 * MEGABYTE) / 12_000);
    expect(counts.slice(0, firstKept).every((count) => count === 0)).toBe(true);
    expect(counts.slice(firstKept + 1).every((count) => count === 100)).toBe(true);
  });

  it('keeps the recent events of a quiet session', () => {
    const budget = new ReplayBudget(MEGABYTE, 60_000);
    const [quiet, busy] = [new Replay(budget), new Replay(budget)];
    quiet.add(event(1, 1, 'long ago'));
    for (let sequence = 1; sequence <= 900; sequence++) busy.add(event(1, sequence, 'x'.repeat(700)));
    quiet.add(event(1, 2, 'lately'));
    const other = new Replay(budget);
    for (let sequence = 1; sequence <= 900; sequence++) other.add(event(1, sequence, 'x'.repeat(700)));
    expect(textsOf(quiet, 1)).toContain('lately');
    expect(busy.after(1, 0).length).toBeLessThan(900);
  });

  it('is not emptied for a single event that would fill it', () => {
    const budget = new ReplayBudget(MEGABYTE, 60_000);
    const [one, other] = [new Replay(budget), new Replay(budget)];
    one.add(event(1, 1, 'small'));
    other.add({ stream: 1, sequence: 1, message: [Buffer.alloc(MEGABYTE)] });
    expect(textsOf(one, 1)).toEqual(['small']);
    expect(other.after(1, 0)).toEqual([]);
  });

  it('keeps nothing if it is zero, and nothing after a session closes', () => {
    const none = new Replay(new ReplayBudget(0, 60_000));
    none.add(event(1, 1, 'x'));
    expect(none.after(1, 0)).toEqual([]);
    const budget = new ReplayBudget(MEGABYTE, 60_000);
    const closed = new Replay(budget);
    closed.close();
    closed.add(event(1, 1, 'x'));
    expect(budget.heldBytes).toBe(0);
  });
});

function withinLimits(events: KeptEvent[]): KeptEvent[] {
  let bytes = events.reduce((sum, { message }) => sum + byteLength(message), 0);
  let from = 0;
  while (events.length - from > 1_000 || (bytes > MEGABYTE && events.length - from > 1)) {
    bytes -= byteLength(events[from++]!.message);
  }
  return events.slice(from);
}

function described(events: KeptEvent[]): string[] {
  return events.map(({ stream, sequence, message }) => {
    const bytes = Buffer.concat([...message]);
    const isOwn = bytes.every((byte) => byte === 0x30 + stream);
    return `${stream}_${sequence}: ${bytes.length} bytes${isOwn ? '' : ', not its own'}`;
  });
}
