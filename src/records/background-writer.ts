/** Writes to the database in the background: a while after a change, one write at a time, and again after a failure. */
export class BackgroundWriter {
  private readonly write: () => Promise<void>;
  private readonly delayMs: number;
  private readonly retryMs: number;
  private timer: NodeJS.Timeout | undefined;
  private last: Promise<void> = Promise.resolve();
  private isClosed = false;
  isWriting = false;

  constructor(write: () => Promise<void>, delayMs: number, retryMs: number) {
    this.write = write;
    this.delayMs = delayMs;
    this.retryMs = retryMs;
  }

  /** Changes that follow before the write are written with it. */
  schedule(delayMs = this.delayMs): void {
    if (this.isClosed) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.run();
    }, delayMs).unref();
  }

  /** Writes after the write in flight. Never rejects: a write that fails is scheduled again. */
  run(write = this.write): Promise<void> {
    this.last = this.last
      .then(() => {
        this.isWriting = true;
        return write();
      })
      .catch(() => this.schedule(this.retryMs))
      .finally(() => {
        this.isWriting = false;
      });
    return this.last;
  }

  /** Writes what is left, once. */
  close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    return this.run();
  }
}
