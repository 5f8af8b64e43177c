import type { LastCrash, Memory } from './condition.ts';
import type { Exit } from './driver.ts';
import {
  afterExit,
  type Decision,
  noCrashes,
  type RestartPolicy,
  type RestartRules,
  type RestartState,
  remainingDelayMs,
} from './restart-policy.ts';

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
