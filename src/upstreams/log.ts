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
