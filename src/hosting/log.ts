export interface LogLine {
  at: Date;
  line: string;
}

const MAX_LINES = 1_000;
/** Longer lines are cut, after redaction. */
const SHOWN_CHARACTERS = 2_000;

/** The last lines that a hosted server wrote, and what happened to it. Survives restarts of the server. */
export class HostedLog {
  private readonly redact: (text: string) => string;
  /** A ring buffer: once it is full, the next line replaces the oldest. */
  private readonly ring: LogLine[] = [];
  private oldest = 0;
  private readonly listeners = new Set<(line: LogLine) => void>();

  constructor(redact: (text: string) => string) {
    this.redact = redact;
  }

  /** Returns the line as it may be shown. */
  add(text: string): string {
    const clean = this.redact(text);
    const line = clean.length > SHOWN_CHARACTERS ? `${clean.slice(0, SHOWN_CHARACTERS)} …` : clean;
    const entry = { at: new Date(), line };
    this.ring[this.oldest] = entry;
    this.oldest = (this.oldest + 1) % MAX_LINES;
    for (const listener of this.listeners) listener(entry);
    return line;
  }

  /** Oldest first. */
  get lines(): readonly LogLine[] {
    if (this.ring.length < MAX_LINES) return [...this.ring];
    return [...this.ring.slice(this.oldest), ...this.ring.slice(0, this.oldest)];
  }

  /** Returns the function that ends it. */
  follow(listener: (line: LogLine) => void): () => void {
    // A function of its own, so that the same listener can follow twice.
    const own = (line: LogLine) => listener(line);
    this.listeners.add(own);
    return () => {
      this.listeners.delete(own);
    };
  }
}

/** Lines before an exit that may explain it. */
const RECENT_LINES = 50;

/** The last lines of one instance, redacted. */
export class LastLines {
  private readonly lines: string[] = [];

  add(line: string): void {
    if (line.trim() === '') return;
    if (this.lines.length === RECENT_LINES) this.lines.shift();
    this.lines.push(line);
  }

  /** As many whole lines from the end as fit, or the end of the last one. */
  get text(): string {
    let from = this.lines.length;
    let length = -1;
    while (from > 0 && length + 1 + this.lines[from - 1]!.length <= SHOWN_CHARACTERS) {
      length += 1 + this.lines[--from]!.length;
    }
    if (from === this.lines.length) return (this.lines.at(-1) ?? '').slice(-SHOWN_CHARACTERS);
    return this.lines.slice(from).join('\n');
  }
}
