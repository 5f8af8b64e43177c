/** How many lines before the end may still say why it came. */
const RECENT = 30;

/** A line that names a failure: `Error: …`, `ValueError: …`, `FATAL …`, `npm error …`, `panic: …`. */
const failure = /^(npm )?\S*(error|exception|fatal|panic|failed|cannot)\b/i;

/** Keeps what a process wrote last, and picks the line that tells most about its end. */
export class LastWords {
  private lines: string[] = [];

  add(line: string): void {
    if (line.trim() === '') return;
    if (this.lines.length === RECENT) this.lines.shift();
    this.lines.push(line);
  }

  /** The last line that names a failure, else the last of all; empty where nothing was said. */
  get best(): string {
    return this.lines.findLast((line) => failure.test(line)) ?? this.lines.at(-1) ?? '';
  }
}
