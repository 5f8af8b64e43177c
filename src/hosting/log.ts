export interface LogLine {
  at: Date;
  line: string;
}

const MAX_LINES = 1_000;
/** Of a longer line the rest is cut off, after its secrets were masked. */
const SHOWN_CHARACTERS = 2_000;

/** The last lines that a hosted server wrote or that were said about it. Restarts of the server leave them in place. */
export class HostedLog {
  private readonly redact: (text: string) => string;
  /** A ring, once it is full: `oldest` is where the next one goes. */
  private readonly ring: LogLine[] = [];
  private oldest = 0;
  private readonly listeners = new Set<(line: LogLine) => void>();

  constructor(redact: (text: string) => string) {
    this.redact = redact;
  }

  /** Gives the line as it may be shown. */
  add(text: string): string {
    const clean = this.redact(text);
    const line = clean.length > SHOWN_CHARACTERS ? `${clean.slice(0, SHOWN_CHARACTERS)} …` : clean;
    const entry = { at: new Date(), line };
    this.ring[this.oldest] = entry;
    this.oldest = (this.oldest + 1) % MAX_LINES;
    for (const listener of this.listeners) listener(entry);
    return line;
  }

  /** From the oldest to the newest. */
  get lines(): readonly LogLine[] {
    if (this.ring.length < MAX_LINES) return [...this.ring];
    return [...this.ring.slice(this.oldest), ...this.ring.slice(0, this.oldest)];
  }

  /** Tells of every line from now on, until it is stopped by what is given. */
  follow(listener: (line: LogLine) => void): () => void {
    // Its own, so that a listener that follows twice can be stopped one by one.
    const own = (line: LogLine) => listener(line);
    this.listeners.add(own);
    return () => {
      this.listeners.delete(own);
    };
  }
}

/** So many lines before an end may say why it came. */
const RECENT_LINES = 50;

/** What an instance wrote last, as it may be shown. */
export class LastLines {
  private readonly lines: string[] = [];

  add(line: string): void {
    if (line.trim() === '') return;
    if (this.lines.length === RECENT_LINES) this.lines.shift();
    this.lines.push(line);
  }

  /** As many whole lines from the end as fit, but at least the end of the last one. */
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
