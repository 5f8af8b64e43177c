import type { LastCrash, Memory } from './condition.ts';
import type { Exit } from './driver.ts';

export type RestartPolicy = 'always' | 'on-failure' | 'never';

/** What the next decision depends on. */
export interface RestartState {
  /** When it crashed, in milliseconds since 1970: those that may still count, from the oldest to the newest. */
  crashes: readonly number[];
  /** The place in the ladder of delays, counted from 1; 0 where it is in no crash loop. */
  step: number;
}

export interface RestartRules {
  /** So many crashes within `windowMs` are followed by a start after these delays; with one more it is a crash loop. */
  firstDelaysMs: readonly number[];
  /** Also how long it has to run to be out of a crash loop. */
  windowMs: number;
  /** The delays of a crash loop. The last one stays. */
  ladderMs: readonly number[];
}

/** More than 3 crashes within 60 s are a crash loop: 5 s, 15 s, 45 s, 2 min, 5 min. */
export const restartRules: RestartRules = {
  firstDelaysMs: [0, 250, 1_000],
  windowMs: 60_000,
  ladderMs: [5_000, 15_000, 45_000, 120_000, 300_000],
};

export const noCrashes: RestartState = { crashes: [], step: 0 };

/** How an instance ended that nobody asked to end. */
export interface UnexpectedExit {
  /** Undefined where it was ended by a signal, could not be started, or nobody knows. */
  code: number | undefined;
  /** What ran it is away. */
  isLost: boolean;
}

export type Decision =
  | { action: 'restart'; delayMs: number; isLoop: boolean; state: RestartState }
  /** It is not started again: it did what it had to do, or the policy forbids it. */
  | { action: 'stay'; status: 'stopped' | 'failed'; state: RestartState }
  /** Until what runs it is there again. That is no crash. */
  | { action: 'wait'; state: RestartState };

/** What to do after an instance ended by itself, having run for `uptimeMs`. */
export function afterExit(
  state: RestartState,
  exit: UnexpectedExit,
  policy: RestartPolicy,
  uptimeMs: number,
  now: number,
  rules: RestartRules = restartRules,
): Decision {
  if (exit.isLost) return { action: 'wait', state };
  const isDone = exit.code === 0 && policy !== 'always';
  if (isDone) return { action: 'stay', status: 'stopped', state: noCrashes };

  const ranLong = uptimeMs >= rules.windowMs;
  // Times to come were written before the clock was set back.
  const recent = ranLong ? [] : state.crashes.filter((at) => at > now - rules.windowMs && at <= now);
  const crashes = [...recent, now];
  if (policy === 'never') return { action: 'stay', status: 'failed', state: { crashes, step: 0 } };

  const lastStep = ranLong ? 0 : state.step;
  const isLoop = lastStep > 0 || crashes.length > rules.firstDelaysMs.length;
  if (!isLoop) {
    const delayMs = rules.firstDelaysMs[crashes.length - 1]!;
    return { action: 'restart', delayMs, isLoop, state: { crashes, step: 0 } };
  }
  const step = Math.min(lastStep + 1, rules.ladderMs.length);
  // What happened before the last so many makes no difference any more, and a row has to hold them.
  const kept = crashes.slice(-(rules.firstDelaysMs.length + 1));
  return { action: 'restart', delayMs: delayOf(step, rules), isLoop, state: { crashes: kept, step } };
}

/** How much is left of the delay of a crash loop, for one whose state was kept while nobody looked after it. */
export function remainingDelayMs(
  state: RestartState,
  now: number,
  rules: RestartRules = restartRules,
): number {
  const last = state.crashes.at(-1);
  if (state.step <= 0 || last === undefined || last > now) return 0;
  return Math.max(0, last + delayOf(state.step, rules) - now);
}

function delayOf(step: number, { ladderMs }: RestartRules): number {
  return ladderMs[Math.min(step, ladderMs.length) - 1]!;
}

/** How a server ended by itself. */
export interface End {
  exit: Exit;
  reason: string;
  uptimeMs: number;
}

/** What is known of the crashes of one server. */
export class CrashHistory {
  private readonly rules: RestartRules;
  private state: RestartState;
  private restarts: number;
  private lastCrash: LastCrash | null;

  constructor(memory: Memory, rules: RestartRules) {
    this.rules = rules;
    const crashes = memory.crashes.map((at) => Date.parse(at)).filter((at) => !Number.isNaN(at));
    this.state = { crashes, step: memory.step };
    this.restarts = memory.restarts;
    this.lastCrash = memory.lastCrash;
  }

  get memory(): Memory {
    const { restarts, lastCrash, state } = this;
    const crashes = state.crashes.map((at) => new Date(at).toISOString());
    return { restarts, lastCrash, crashes, step: state.step };
  }

  get isLoop(): boolean {
    return this.state.step > 0;
  }

  /** What is left of the delay of a crash loop. */
  get delayLeftMs(): number {
    return remainingDelayMs(this.state, Date.now(), this.rules);
  }

  /** Counts it, and says what to do. */
  ended({ exit, reason, uptimeMs }: End, policy: RestartPolicy): Decision {
    const now = Date.now();
    const decision = afterExit(this.state, exit, policy, uptimeMs, now, this.rules);
    this.state = decision.state;
    const isCrash =
      decision.action === 'restart' || (decision.action === 'stay' && decision.status === 'failed');
    if (isCrash) {
      this.lastCrash = {
        at: new Date(now).toISOString(),
        exit_code: exit.code ?? null,
        signal: exit.signal ?? null,
        reason,
      };
    }
    return decision;
  }

  /** It runs again after a crash. */
  restarted(): void {
    this.restarts++;
  }

  /** What happened so far delays no start any more. */
  forgive(): void {
    this.state = noCrashes;
  }

  /** Also the count of restarts begins anew. */
  reset(): void {
    this.forgive();
    this.restarts = 0;
  }
}

/** What did not succeed, how often in a row, and how long to wait before it is tried again: longer each time. */
export class RetryBackoff {
  private readonly rules: RestartRules;
  private failures = 0;

  constructor(rules: RestartRules) {
    this.rules = rules;
  }

  /** Whether it was tried so often that the next try is not soon. */
  get isBackingOff(): boolean {
    return this.failures > this.rules.firstDelaysMs.length;
  }

  /** Counts one more, and gives the delay before the next. */
  failed(): number {
    const { firstDelaysMs, ladderMs } = this.rules;
    const delaysMs = [...firstDelaysMs, ...ladderMs];
    return delaysMs[Math.min(this.failures++, delaysMs.length - 1)]!;
  }

  /** The same for what is not worth a try at once. */
  failedForLong(): number {
    this.failures = Math.max(this.failures, this.rules.firstDelaysMs.length);
    return this.failed();
  }

  reset(): void {
    this.failures = 0;
  }
}
