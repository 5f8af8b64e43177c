import type { BackoffRule } from '../channels/timing.ts';
import type { RestartPolicy } from '../config/choices.ts';
import type { Exit } from './driver.ts';

export interface RunHistory {
  /** Since the last manual restart. */
  restarts: number;
  lastCrash: LastCrash | null;
  /** Times of the crashes that may still count. */
  crashes: string[];
  /** Of the backoff ladder; 0 for none. */
  step: number;
  /** The port that was last published on this machine. */
  hostPort?: number | undefined;
}

interface LastCrash {
  at: string;
  exit_code: number | null;
  signal: string | null;
  reason: string;
}

export interface RestartState {
  /** Times of the crashes that still count, in milliseconds since 1970, oldest first. */
  crashes: readonly number[];
  /** Position in the ladder of delays, counted from 1; 0 outside of a crash loop. */
  step: number;
}

export interface RestartRules {
  /** Restart delays for the first crashes within `windowMs`. One crash more is a crash loop. */
  firstDelaysMs: readonly number[];
  /** A run of this length ends a crash loop. */
  windowMs: number;
  /** Restart delays in a crash loop. The last one repeats. */
  ladderMs: readonly number[];
}

/** More than 3 crashes within 60 s are a crash loop: 5 s, 15 s, 45 s, 2 min, 5 min. */
export const restartRules: RestartRules = {
  firstDelaysMs: [0, 250, 1_000],
  windowMs: 60_000,
  ladderMs: [5_000, 15_000, 45_000, 120_000, 300_000],
};

export interface Timing {
  restarts: RestartRules;
  /** When Switchboard stops: the time between SIGTERM and SIGKILL. */
  stopGraceMs: number;
  /** Like `stopGraceMs`, when only this server stops or restarts. */
  restartGraceMs: number;
  /** How long `attach` waits for a start. */
  attachMs: number;
  away: BackoffRule;
}

export const noCrashes: RestartState = { crashes: [], step: 0 };

export type Decision =
  | { action: 'restart'; delayMs: number; isLoop: boolean; state: RestartState }
  /** The server finished, or the policy forbids a restart. */
  | { action: 'stay'; status: 'stopped' | 'failed'; state: RestartState }
  /** Waits for the driver. That is not a crash. */
  | { action: 'wait'; state: RestartState };

/** Decides what to do after an exit that was not requested. */
export function afterExit(
  state: RestartState,
  exit: Pick<Exit, 'code' | 'isLost'>,
  policy: RestartPolicy,
  uptimeMs: number,
  now: number,
  rules: RestartRules = restartRules,
): Decision {
  if (exit.isLost) return { action: 'wait', state };
  const isDone = exit.code === 0 && policy !== 'always';
  if (isDone) return { action: 'stay', status: 'stopped', state: noCrashes };

  const ranLong = uptimeMs >= rules.windowMs;
  // A time in the future means that the clock was set back.
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
  // Older crashes change no decision, and the state is stored in a database row.
  const kept = crashes.slice(-(rules.firstDelaysMs.length + 1));
  return { action: 'restart', delayMs: delayOf(step, rules), isLoop, state: { crashes: kept, step } };
}

/** The rest of a crash loop's delay that began before Switchboard restarted. */
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

export class CrashHistory {
  private readonly rules: RestartRules;
  private state: RestartState;
  private restarts: number;
  private lastCrash: LastCrash | null;

  constructor(history: RunHistory, rules: RestartRules) {
    this.rules = rules;
    const crashes = history.crashes.map((at) => Date.parse(at)).filter((at) => !Number.isNaN(at));
    this.state = { crashes, step: history.step };
    this.restarts = history.restarts;
    this.lastCrash = history.lastCrash;
  }

  get persisted(): RunHistory {
    const { restarts, lastCrash, state } = this;
    const crashes = state.crashes.map((at) => new Date(at).toISOString());
    return { restarts, lastCrash, crashes, step: state.step };
  }

  get isLoop(): boolean {
    return this.state.step > 0;
  }

  get remainingDelayMs(): number {
    return remainingDelayMs(this.state, Date.now(), this.rules);
  }

  exited(exit: Exit, reason: string, uptimeMs: number, policy: RestartPolicy): Decision {
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

  restarted(): void {
    this.restarts++;
  }

  /** Ends the effect of earlier crashes on the delay. */
  forgive(): void {
    this.state = noCrashes;
  }

  reset(): void {
    this.forgive();
    this.restarts = 0;
  }
}

/** Counts consecutive failures, and returns the delay before the next attempt. */
export class RetryBackoff {
  private readonly rules: RestartRules;
  private failures = 0;

  constructor(rules: RestartRules) {
    this.rules = rules;
  }

  get isBackingOff(): boolean {
    return this.failures > this.rules.firstDelaysMs.length;
  }

  failed(): number {
    const { firstDelaysMs, ladderMs } = this.rules;
    const delaysMs = [...firstDelaysMs, ...ladderMs];
    return delaysMs[Math.min(this.failures++, delaysMs.length - 1)]!;
  }

  /** Like `failed`, without the short delays. */
  failedSlowly(): number {
    this.failures = Math.max(this.failures, this.rules.firstDelaysMs.length);
    return this.failed();
  }

  reset(): void {
    this.failures = 0;
  }
}
