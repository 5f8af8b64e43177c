/** What is stopped while nobody uses it. */
interface Rester {
  readonly isBusy: boolean;
  /** Whether it is being asked what it offers. */
  readonly isLearning: boolean;
  rest(): void;
}

/** Stops a replica that nobody has used for long. */
export class Resting {
  private readonly rester: Rester;
  private idleStopMs: number;
  private lastUsed = 0;
  private timer: NodeJS.Timeout | undefined;

  /** `idleStopMs`: after how long without a call; 0 is never. */
  constructor(idleStopMs: number, rester: Rester) {
    this.idleStopMs = idleStopMs;
    this.rester = rester;
  }

  resize(idleStopMs: number): void {
    this.idleStopMs = idleStopMs;
    this.schedule();
  }

  /** A call is on its way, or came back. */
  used(): void {
    if (this.idleStopMs > 0) this.lastUsed = Date.now();
  }

  /** It was started. */
  begin(): void {
    this.lastUsed = Date.now();
    this.schedule();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private schedule(): void {
    clearTimeout(this.timer);
    if (this.idleStopMs === 0) return;
    const sinceUse = Date.now() - this.lastUsed;
    this.timer = setTimeout(() => this.restIfIdle(), Math.max(1, this.idleStopMs - sinceUse)).unref();
  }

  private restIfIdle(): void {
    const isIdle = Date.now() - this.lastUsed >= this.idleStopMs;
    if (this.rester.isBusy) this.lastUsed = Date.now();
    else if (isIdle && !this.rester.isLearning) {
      this.rester.rest();
      return;
    }
    this.schedule();
  }
}
