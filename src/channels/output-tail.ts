const KEPT_LINES = 50;
/** Only this many of them are searched for a failure. */
const SEARCHED_LINES = 30;
const SUMMARY_LINES = 3;
const SUMMARY_CHARACTERS = 600;
const TEXT_CHARACTERS = 2_000;

/** A line that names a failure: `Error: …`, `ValueError: …`, `FATAL …`, `npm error …`, `docker: Error …`, `panic: …`. */
const failure = /^(npm |[\w.-]+: )?\S*(error|exception|fatal|panic|failed|cannot)\b/i;

/** Lines without a reason: hints where to read more, and missing roots, which stop no server. */
const footer =
  /^(npm error( \d{3})?( A complete log of this run| Note that you can also| tarball, folder|$)|Run '.*--help'|Failed to request initial roots)/;

/** The last lines that a process wrote, for the message that it exited. */
export class OutputTail {
  private readonly lines: string[] = [];

  add(line: string): void {
    if (line.trim() === '') return;
    if (this.lines.length === KEPT_LINES) this.lines.shift();
    this.lines.push(line);
  }

  /** The last lines that name a failure, or else the last lines, in one line. */
  get summary(): string {
    const recent = this.lines.slice(-SEARCHED_LINES);
    const useful = recent.filter((line) => !footer.test(line.trimEnd()));
    const failures = useful.filter((line) => failure.test(line));
    const lines = [failures, useful, recent].find((found) => found.length > 0) ?? [];
    const [last = '', ...before] = lines.slice(-SUMMARY_LINES).toReversed();
    let text = last;
    for (const line of before) {
      const longer = `${line.trimEnd()} | ${text}`;
      if (longer.length > SUMMARY_CHARACTERS) break;
      text = longer;
    }
    return text;
  }

  /** As many whole lines from the end as fit, or the end of the last one. */
  get text(): string {
    let from = this.lines.length;
    let length = -1;
    while (from > 0 && length + 1 + this.lines[from - 1]!.length <= TEXT_CHARACTERS) {
      length += 1 + this.lines[--from]!.length;
    }
    if (from === this.lines.length) return (this.lines.at(-1) ?? '').slice(-TEXT_CHARACTERS);
    return this.lines.slice(from).join('\n');
  }
}
