import type { RestartRules } from './restart-policy.ts';

/** What did not succeed, how often in a row, and how long to wait before it is tried again: longer each time. */
export class Tries {
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
