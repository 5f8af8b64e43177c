export interface TimeLimits {
  /** Without a sign of life. */
  timeoutMs: number;
  /** In all. */
  maxTimeoutMs: number;
}

/** The time that something may take. Signs of life put the end off. A base class: there is one for each call. */
export abstract class Deadline {
  private clock: NodeJS.Timeout | undefined;
  private startedAt = 0;
  private lastSign = 0;

  protected abstract limits(): TimeLimits;

  /** Until when nobody was to blame that nothing happened; 0 where that never was so. */
  protected abstract excusedUntil(now: number): number;

  protected abstract timeIsUp(waitedMs: number, limits: TimeLimits): void;

  protected startClock(): void {
    if (this.clock !== undefined) return;
    this.startedAt = performance.now();
    this.lastSign = this.startedAt;
    this.clock = setTimeout(() => this.check(), this.limits().timeoutMs);
  }

  protected stopClock(): void {
    clearTimeout(this.clock);
  }

  protected showsLife(): void {
    this.lastSign = performance.now();
  }

  private check(): void {
    const now = performance.now();
    const limits = this.limits();
    this.lastSign = Math.max(this.lastSign, this.excusedUntil(now));
    const until = Math.min(this.lastSign + limits.timeoutMs, this.startedAt + limits.maxTimeoutMs);
    if (until > now) this.clock = setTimeout(() => this.check(), until - now);
    else this.timeIsUp(Math.round(now - this.startedAt), limits);
  }
}
