/** How many lines before the end may still say why it came. */
const RECENT = 30;
/** So many lines are quoted, and no more than fit into so many characters, but for the last one. */
const QUOTED_LINES = 3;
const QUOTED_CHARACTERS = 600;

/** A line that names a failure: `Error: …`, `ValueError: …`, `FATAL …`, `npm error …`, `docker: Error …`, `panic: …`. */
const failure = /^(npm |[\w.-]+: )?\S*(error|exception|fatal|panic|failed|cannot)\b/i;

/** Lines that say nothing of the reason: where there is more to read, and that we have no roots, which ends no server. */
const footer =
  /^(npm error( \d{3})?( A complete log of this run| Note that you can also| tarball, folder|$)|Run '.*--help'|Failed to request initial roots)/;

/** Keeps what a process wrote last, and picks the lines that tell most about its end. */
export class LastWords {
  private lines: string[] = [];

  add(line: string): void {
    if (line.trim() === '') return;
    if (this.lines.length === RECENT) this.lines.shift();
    this.lines.push(line);
  }

  /** The last lines that name a failure, else the last of all; empty where nothing was said. */
  get best(): string {
    const telling = this.lines.filter((line) => !footer.test(line.trimEnd()));
    const failures = telling.filter((line) => failure.test(line));
    return quoted([failures, telling, this.lines].find((lines) => lines.length > 0) ?? []);
  }
}

function quoted(lines: readonly string[]): string {
  const [last = '', ...before] = lines.slice(-QUOTED_LINES).toReversed();
  let text = last;
  for (const line of before) {
    const longer = `${line.trimEnd()} | ${text}`;
    if (longer.length > QUOTED_CHARACTERS) break;
    text = longer;
  }
  return text;
}
