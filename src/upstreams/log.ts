import type { SwitchboardError } from '../errors.ts';

/** The last lines that a server wrote or that were said about it. Bounded: a server may write for ever. */
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
/** So many failed calls in a window have a line each; the others are counted. */
const LINES = 5;

/** Tells of failed calls. A client that calls in a loop must not push everything else out of a log. */
export class FailureLog {
  private readonly what: string;
  private readonly tell: (line: string) => void;
  private windowStart = Number.NEGATIVE_INFINITY;
  private lines = 0;
  private more = 0;
  private timer: NodeJS.Timeout | undefined;

  /** `what` is counted, as in "41 more calls failed". */
  constructor(what: string, tell: (line: string) => void) {
    this.what = what;
    this.tell = tell;
  }

  add(error: SwitchboardError): void {
    const now = performance.now();
    if (now - this.windowStart >= WINDOW_MS) {
      this.tellCount();
      this.windowStart = now;
      this.lines = 0;
    }
    if (this.lines < LINES) {
      this.lines++;
      this.tell(`a call failed: ${error.message}`);
      return;
    }
    this.more++;
    this.timer ??= setTimeout(() => this.tellCount(), this.windowStart + WINDOW_MS - now).unref();
  }

  /** Tells now how many have no line. */
  tellCount(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.more === 0) return;
    const seconds = Math.ceil((performance.now() - this.windowStart) / 1_000);
    this.tell(`… and ${this.more} more ${this.what} failed in the last ${seconds} s`);
    this.more = 0;
  }
}
