import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  afterExit,
  type Decision,
  noCrashes,
  type RestartState,
  remainingDelayMs,
  restartRules,
} from './restart-policy.ts';

const MINUTE = 60_000;
const START = Date.UTC(2026, 0, 1);
const failure = { code: 1, isLost: false };

const exits = fc.record({
  code: fc.option(fc.integer({ min: 0, max: 255 }), { nil: undefined }),
  isLost: fc.boolean(),
});
const crashExits = fc.record({
  code: fc.option(fc.integer({ min: 1, max: 255 }), { nil: undefined }),
  isLost: fc.constant(false),
});
const policies = fc.constantFrom('always', 'on-failure', 'never');
const restarting = fc.constantFrom('always', 'on-failure');
const states: fc.Arbitrary<RestartState> = fc.record({
  crashes: fc.array(fc.integer({ min: START - 10 * MINUTE, max: START + MINUTE }), { maxLength: 8 }),
  step: fc.integer({ min: 0, max: 9 }),
});
const uptimes = fc.integer({ min: 0, max: 20 * MINUTE });
/** The uptime before each crash. */
const histories = fc.array(fc.integer({ min: 0, max: 2 * MINUTE }), { minLength: 1, maxLength: 30 });

interface Crash {
  at: number;
  uptimeMs: number;
  decision: Decision;
}

/** Crashes repeatedly, each time starting when the previous decision says. */
function crashAll(runs: readonly number[], policy: 'always' | 'on-failure' = 'always'): Crash[] {
  const crashes: Crash[] = [];
  let state = noCrashes;
  let now = START;
  for (const uptimeMs of runs) {
    now += uptimeMs;
    const decision = afterExit(state, failure, policy, uptimeMs, now);
    crashes.push({ at: now, uptimeMs, decision });
    state = decision.state;
    if (decision.action === 'restart') now += decision.delayMs;
  }
  return crashes;
}

const delayOf = (decision: Decision) => (decision.action === 'restart' ? decision.delayMs : undefined);

describe('the decision after an exit', () => {
  it('follows the required delays for crashes in a row: 3 at once, then 5 s, 15 s, 45 s, 2 min, 5 min forever', () => {
    const delays = crashAll(Array(12).fill(100)).map(({ decision }) => delayOf(decision));
    expect(delays.slice(0, 3).every((delay) => delay !== undefined && delay <= 1_000)).toBe(true);
    expect(delays.slice(3)).toEqual([
      5_000, 15_000, 45_000, 120_000, 300_000, 300_000, 300_000, 300_000, 300_000,
    ]);
  });

  it('is no crash loop with 3 crashes in 60 s, and one with the fourth', () => {
    const spread = crashAll([0, 19_000, 19_000, 19_000]);
    expect(spread.map(({ decision }) => decision)).toMatchObject([
      { isLoop: false },
      { isLoop: false },
      { isLoop: false },
      { isLoop: true, delayMs: 5_000 },
    ]);
    const wider = crashAll([0, 25_000, 25_000, 25_000, 25_000]);
    expect(wider.every(({ decision }) => decision.action === 'restart' && !decision.isLoop)).toBe(true);
  });

  it('counts no crash if the provider is unavailable', () => {
    fc.assert(
      fc.property(states, policies, uptimes, (state, policy, uptime) => {
        const decision = afterExit(state, { code: undefined, isLost: true }, policy, uptime, START);
        expect(decision).toEqual({ action: 'wait', state });
      }),
    );
  });

  it('is no restart with the policy "never"', () => {
    fc.assert(
      fc.property(states, exits, uptimes, (state, exit, uptime) => {
        const { action } = afterExit(state, { ...exit, isLost: false }, 'never', uptime, START);
        expect(action).toBe('stay');
      }),
    );
  });

  it('is a restart with "always" after every exit, and with "on-failure" after all but those with code 0', () => {
    fc.assert(
      fc.property(states, restarting, exits, uptimes, (state, policy, { code }, uptime) => {
        const decision = afterExit(state, { code, isLost: false }, policy, uptime, START);
        if (policy === 'on-failure' && code === 0) {
          expect(decision).toMatchObject({ action: 'stay', status: 'stopped', state: noCrashes });
        } else {
          expect(decision.action).toBe('restart');
        }
      }),
    );
  });

  it('is "failed" only after a failure', () => {
    fc.assert(
      fc.property(states, policies, exits, uptimes, (state, policy, exit, uptime) => {
        const decision = afterExit(state, exit, policy, uptime, START);
        if (decision.action === 'stay') expect(decision.status).toBe(exit.code === 0 ? 'stopped' : 'failed');
      }),
    );
  });

  it('is a restart within a second, unless more than 3 crashes came in 60 s or it is already in a loop', () => {
    fc.assert(
      fc.property(histories, restarting, (runs, policy) => {
        const crashes = crashAll(runs, policy);
        let wasLoop = false;
        for (const [index, { at, uptimeMs, decision }] of crashes.entries()) {
          const recent = crashes.slice(0, index + 1).filter((each) => at - each.at < MINUTE);
          const goesOn = wasLoop && uptimeMs < MINUTE;
          if (decision.action !== 'restart') throw new Error('It has to be started again.');
          expect(decision.isLoop).toBe(goesOn || recent.length > 3);
          if (!decision.isLoop) expect(decision.delayMs).toBeLessThanOrEqual(1_000);
          wasLoop = decision.isLoop;
        }
      }),
      { numRuns: 500 },
    );
  });

  it('increases the delay step by step in a loop, and resets it after a run of 60 s', () => {
    fc.assert(
      fc.property(histories, (runs) => {
        let before = 0;
        for (const { uptimeMs, decision } of crashAll(runs)) {
          const { step } = decision.state;
          if (uptimeMs >= MINUTE) expect(step).toBe(0);
          else if (before > 0) expect(step).toBe(Math.min(before + 1, 5));
          else expect(step).toBeLessThanOrEqual(1);
          if (step > 0) expect(delayOf(decision)).toBe(restartRules.ladderMs[step - 1]);
          before = step;
        }
      }),
      { numRuns: 500 },
    );
  });

  it('counts each crash once', () => {
    fc.assert(
      fc.property(states, crashExits, policies, uptimes, (state, exit, policy, uptime) => {
        const { crashes } = afterExit(state, exit, policy, uptime, START).state;
        expect(crashes.at(-1)).toBe(START);
        const added = crashes.filter((at) => at === START).length;
        expect(added).toBeLessThanOrEqual(state.crashes.filter((at) => at === START).length + 1);
        expect(crashes.length).toBeLessThanOrEqual(state.crashes.length + 1);
      }),
    );
  });

  it('keeps a bounded history, without irrelevant times', () => {
    fc.assert(
      fc.property(histories, (runs) => {
        for (const { at, decision } of crashAll(runs)) {
          const { crashes } = decision.state;
          expect(crashes.length).toBeLessThanOrEqual(4);
          expect(crashes.every((time) => time > at - MINUTE && time <= at)).toBe(true);
        }
      }),
    );
  });

  it('follows the given rules', () => {
    const rules = { firstDelaysMs: [7], windowMs: 100, ladderMs: [20, 30] };
    let state = noCrashes;
    const delays = [0, 1, 2, 3].map((at) => {
      const decision = afterExit(state, failure, 'always', 1, START + at, rules);
      state = decision.state;
      return delayOf(decision);
    });
    expect(delays).toEqual([7, 20, 30, 30]);
  });
});

describe('the remaining delay', () => {
  it('is zero outside a loop, and never more than the step', () => {
    fc.assert(
      fc.property(states, fc.integer({ min: START, max: START + 20 * MINUTE }), (state, now) => {
        const left = remainingDelayMs(state, now);
        expect(left).toBeGreaterThanOrEqual(0);
        expect(left).toBeLessThanOrEqual(
          state.step === 0 ? 0 : restartRules.ladderMs[Math.min(state.step, 5) - 1]!,
        );
      }),
    );
  });

  it('ends exactly at the planned start', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 0, max: 600_000 }), (step, later) => {
        const whole = restartRules.ladderMs[step - 1]!;
        const left = remainingDelayMs({ crashes: [START], step }, START + later);
        expect(left).toBe(Math.max(0, whole - later));
      }),
    );
  });
});
