import type { SwitchboardError } from '../errors.ts';

/** The last lines from a server or about it. */
export class ServerLog {
  private readonly redact: (text: string) => string;
  private readonly maxLines: number;
  private readonly kept: string[] = [];

  constructor(redact: (text: string) => string, maxLines = 200) {
    this.redact = redact;
    this.maxLines = maxLines;
  }

  add(line: string): void {
    if (this.kept.length === this.maxLines) this.kept.shift();
    const clean = this.redact(line);
    this.kept.push(clean.length > 2_000 ? `${clean.slice(0, 2_000)} …` : clean);
  }

  get lines(): readonly string[] {
    return this.kept;
  }
}

const WINDOW_MS = 10_000;
/** Further failed calls in a window are only counted. */
const LINES = 5;

/** Logs failed calls, but not so many that they push everything else out of the log. */
export class FailureLog {
  private readonly what: string;
  private readonly log: (line: string) => void;
  private windowStart = Number.NEGATIVE_INFINITY;
  private lines = 0;
  private more = 0;
  private timer: NodeJS.Timeout | undefined;

  /** `what` is counted, as in "41 more calls failed". */
  constructor(what: string, log: (line: string) => void) {
    this.what = what;
    this.log = log;
  }

  add(error: SwitchboardError): void {
    const now = performance.now();
    if (now - this.windowStart >= WINDOW_MS) {
      this.flush();
      this.windowStart = now;
      this.lines = 0;
    }
    if (this.lines < LINES) {
      this.lines++;
      this.log(`a call failed: ${error.message}`);
      return;
    }
    this.more++;
    this.timer ??= setTimeout(() => this.flush(), this.windowStart + WINDOW_MS - now).unref();
  }

  /** Logs how many failures have no line. */
  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.more === 0) return;
    const seconds = Math.ceil((performance.now() - this.windowStart) / 1_000);
    this.log(`… and ${this.more} more ${this.what} failed in the last ${seconds} s`);
    this.more = 0;
  }
}
