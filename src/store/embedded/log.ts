import { closeSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs';

const MAX_BYTES = 1024 * 1024;
const CHECK_MS = 60_000;
const TAIL_LINES = 5;

/** What PostgreSQL says, in a file of its own, because it may outlive us. */
export class PostgresLog {
  readonly path: string;
  private readonly timer: NodeJS.Timeout;

  constructor(path: string) {
    this.path = path;
    this.timer = setInterval(() => this.bound(), CHECK_MS);
    this.timer.unref();
  }

  /** Hands the open file to whoever starts a process with it. */
  use<Result>(start: (file: number) => Result): Result {
    this.bound();
    const file = openSync(this.path, 'a', 0o600);
    try {
      return start(file);
    } finally {
      closeSync(file);
    }
  }

  get size(): number {
    return statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** The last lines of what was said since it had that size. */
  tail(since: number): string {
    const said = readFileSync(this.path).subarray(since).toString();
    return said.trim().split('\n').slice(-TAIL_LINES).join('\n');
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** Every write goes to the end, wherever that is. */
  private bound(): void {
    if (this.size > MAX_BYTES) truncateSync(this.path);
  }
}
