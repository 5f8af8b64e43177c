import { closeSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs';

const MAX_BYTES = 1024 * 1024;
const CHECK_MS = 60_000;
const TAIL_LINES = 5;

/** A file and not a pipe, because PostgreSQL may outlive us. */
export class PostgresLog {
  readonly path: string;
  private readonly timer: NodeJS.Timeout;

  constructor(path: string) {
    this.path = path;
    this.timer = setInterval(() => this.bound(), CHECK_MS);
    this.timer.unref();
  }

  /** Opens the file for the duration of `start`. */
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

  /** The last lines written since the file had that size. */
  tail(since: number): string {
    const said = readFileSync(this.path).subarray(since).toString();
    return said.trim().split('\n').slice(-TAIL_LINES).join('\n');
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** PostgreSQL appends, so it continues at the new end. */
  private bound(): void {
    if (this.size > MAX_BYTES) truncateSync(this.path);
  }
}
