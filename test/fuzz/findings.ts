/** A finding, and the case that showed it first. */
interface Finding {
  what: string;
  times: number;
  index: number | undefined;
}

/** So many different ones are kept in words. */
const MAX_KEPT = 50;

/** All that was found, the same thing once. */
export class Findings {
  total = 0;
  private readonly kept = new Map<string, Finding>();
  private readonly commandFor: (index: number) => string;
  private readonly found: (line: string) => void;

  /** `found` is told of each kind once, at once. */
  constructor(commandFor: (index: number) => string, found: (line: string) => void = () => {}) {
    this.commandFor = commandFor;
    this.found = found;
  }

  /** `what` begins with what it is; details follow a semicolon. */
  add(what: string, index?: number): void {
    this.total++;
    const kind = what.split(';')[0]!.replaceAll(/\d+/g, '#');
    const known = this.kept.get(kind);
    if (known !== undefined) known.times++;
    else if (this.kept.size < MAX_KEPT) {
      const finding = { what, times: 1, index };
      this.kept.set(kind, finding);
      this.found(this.line(finding));
    }
  }

  lines(): string[] {
    return [...this.kept.values()].map((finding) => this.line(finding));
  }

  private line({ what, times, index }: Finding): string {
    const often = times === 1 ? '' : ` (${times} times; the first one is shown)`;
    const again = index === undefined ? '' : `\n    again: ${this.commandFor(index)}`;
    return `${what}${often}${again}`;
  }
}
