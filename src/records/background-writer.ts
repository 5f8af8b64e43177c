/** Writes in the background after a delay, one write at a time, and retries failures. */
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

  schedule(delayMs = this.delayMs): void {
    if (this.isClosed) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.run();
    }, delayMs).unref();
  }

  /** Waits for the write in flight. Never rejects: a failed write is scheduled again. */
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

  /** Writes the rest, without a retry. */
  close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    return this.run();
  }
}
