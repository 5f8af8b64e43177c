import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SwitchboardError } from '../errors.ts';
import {
  type Condition,
  initialCondition,
  type LifecycleEvent,
  next,
  overall,
  type RecoveryPolicy,
  type State,
} from './condition.ts';

const reason = new SwitchboardError('server_unavailable', 'gone');
const kinds = ['starts', 'connected', 'ready', 'rests', 'stops'] as const;
const troubles = ['connect failed', 'unusable', 'loops', 'lost'] as const;

interface Step {
  happening: (now: number) => LifecycleEvent;
  pauseMs: number;
  chance: number;
}

const policies: fc.Arbitrary<RecoveryPolicy> = fc.record({
  backoff: fc.record({ firstMs: fc.integer({ min: 1, max: 1_000 }), maxMs: fc.constant(30_000) }),
  breakerFailures: fc.integer({ min: 1, max: 5 }),
  breakerOpenMs: fc.integer({ min: 1, max: 300_000 }),
});
const happening: fc.Arbitrary<Step['happening']> = fc.oneof(
  fc.constantFrom(...kinds).map((kind) => () => ({ kind })),
  fc.record({ kind: fc.constantFrom(...troubles), isThere: fc.boolean() }).map(
    ({ kind, isThere }) =>
      () =>
        kind === 'lost' ? { kind, reason, isThere } : { kind, reason },
  ),
  fc
    .nat({ max: 60_000 })
    .map((ms) => (now: number) => ({ kind: 'impaired' as const, reason, nextTry: now + ms })),
);
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const steps = fc.array(fc.record({ happening, pauseMs: fc.nat({ max: 30_000 }), chance }), { maxLength: 80 });
/** Without stops, because most sequences would end early. */
const lively = steps.map((all) => all.filter(({ happening: happens }) => happens(0).kind !== 'stops'));

interface Passage {
  before: Condition;
  happening: LifecycleEvent;
  after: Condition;
  now: number;
}

function passages(all: readonly Step[], policy: RecoveryPolicy): Passage[] {
  let now = 0;
  let before = initialCondition(now);
  return all.map(({ happening: happens, pauseMs, chance: random }) => {
    now += pauseMs;
    const passage = { before, happening: happens(now), after: before, now };
    passage.after = next(before, passage.happening, now, policy, random);
    before = passage.after;
    return passage;
  });
}

function everyPassage(
  sequences: fc.Arbitrary<Step[]>,
  check: (passage: Passage, policy: RecoveryPolicy) => void,
) {
  fc.assert(
    fc.property(sequences, policies, (all, policy) => {
      for (const passage of passages(all, policy)) check(passage, policy);
    }),
    { numRuns: 500 },
  );
}

const tried: State[] = ['backing_off', 'breaker_open', 'degraded'];

describe('a condition', () => {
  it('has a next retry exactly while it backs off, its breaker is open, or it is degraded', () => {
    everyPassage(steps, ({ after }) => {
      expect(after.nextTry !== undefined).toBe(tried.includes(after.state));
    });
  });

  it('has a next retry that is not in the past, and within its policy', () => {
    everyPassage(lively, ({ before, after, now }, { backoff, breakerOpenMs }) => {
      if (after === before || after.nextTry === undefined) return;
      expect(after.nextTry).toBeGreaterThanOrEqual(now);
      if (after.state === 'breaker_open') expect(after.nextTry).toBe(now + breakerOpenMs);
      if (after.state === 'backing_off') expect(after.nextTry).toBeLessThanOrEqual(now + backoff.maxMs);
    });
  });

  it('that is stopped stays stopped', () => {
    everyPassage(steps, ({ before, after }) => {
      if (before.state === 'stopped') expect(after).toBe(before);
    });
  });

  it('has a reason exactly if something is wrong', () => {
    everyPassage(steps, ({ after }) => {
      if ([...tried, 'failed'].includes(after.state)) expect(after.reason).toBe(reason);
      if (['ready', 'idle', 'stopped'].includes(after.state)) expect(after.reason).toBeUndefined();
    });
  });

  it('knows when its state began', () => {
    everyPassage(steps, ({ before, after, now }) => {
      expect(after.since).toBe(after.state === before.state ? before.since : now);
    });
  });

  it('opens its breaker after the configured number of failed connects in a row, and after each further one', () => {
    everyPassage(lively, ({ before, happening: { kind }, after }, { breakerFailures }) => {
      if (kind !== 'connect failed' || before.state !== 'starting') return;
      expect(after.failedConnects).toBe(before.failedConnects + 1);
      expect(after.state).toBe(after.failedConnects >= breakerFailures ? 'breaker_open' : 'backing_off');
    });
  });

  it('resets the count of failed connects only after a success', () => {
    everyPassage(lively, ({ before, happening: { kind }, after }) => {
      if (kind === 'connected' && before.state === 'starting') expect(after.failedConnects).toBe(0);
      else expect(after.failedConnects).toBeGreaterThanOrEqual(before.failedConnects);
    });
  });

  it('is retried at once after a loss, unless it was lost shortly before', () => {
    const policy = { backoff: { firstMs: 1_000, maxMs: 30_000 }, breakerFailures: 3, breakerOpenMs: 60_000 };
    let now = 0;
    let condition = initialCondition(now);
    let isThere = false;
    const pauseAfter = (uptimeMs: number): number => {
      for (const kind of ['starts', 'connected', 'ready'] as const) {
        condition = next(condition, { kind }, now, policy, 0);
      }
      now += uptimeMs;
      condition = next(condition, { kind: 'lost', reason, isThere }, now, policy, 0);
      return condition.nextTry! - now;
    };
    const uptimes = [50, 9_999, 9_999, 10_000, 1, 60_000];
    expect(uptimes.map(pauseAfter)).toEqual([0, 1_000, 2_000, 0, 1_000, 0]);
    // A server that still responds and only lost its session gets more chances.
    isThere = true;
    expect([60_000, 1, 1, 1, 1].map(pauseAfter)).toEqual([0, 0, 0, 1_000, 2_000]);
  });
});

describe('several conditions combined', () => {
  const nearness: State[] = [
    'ready',
    'degraded',
    'starting',
    'idle',
    'backing_off',
    'breaker_open',
    'failed',
    'stopped',
  ];
  const conditions = fc.array(
    fc
      .tuple(steps, policies)
      .map(([all, policy]) => passages(all, policy).at(-1)?.after ?? initialCondition(0)),
    { minLength: 1, maxLength: 5 },
  );
  const inTrouble = ({ state }: Condition) => [...tried, 'failed'].includes(state);

  it('are the best one, or degraded if the best is ready and others are not', () => {
    fc.assert(
      fc.property(conditions, (all) => {
        const best = nearness.find((state) => all.some((one) => one.state === state));
        const one = overall(all);
        if (best !== 'ready' || !all.some(inTrouble)) {
          expect(one.state).toBe(best);
          expect(all).toContain(one);
          return;
        }
        expect(one.state).toBe('degraded');
        const { since, reason: why, nextTry } = one;
        expect(all.filter(inTrouble)).toContainEqual(
          expect.objectContaining({ since, reason: why, nextTry }),
        );
      }),
      { numRuns: 500 },
    );
  });

  it('are the only one of one, and undefined for none', () => {
    const one = initialCondition(0);
    expect(overall([one])).toBe(one);
    expect(() => overall([])).toThrow();
  });
});
