interface Finding {
  what: string;
  times: number;
  index: number | undefined;
}

/** Only this many different findings keep their text. */
const MAX_KEPT = 50;

/** All findings, without duplicates. */
export class Findings {
  total = 0;
  private readonly kept = new Map<string, Finding>();
  private readonly commandFor: (index: number) => string;
  private readonly found: (line: string) => void;

  /** `found` is called once for each kind. */
  constructor(commandFor: (index: number) => string, found: (line: string) => void = () => {}) {
    this.commandFor = commandFor;
    this.found = found;
  }

  /** `what` starts with the kind; details follow a semicolon. */
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
