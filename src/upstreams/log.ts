/** The last lines that a server wrote or that were said about it. Bounded: a server may write for ever. */
export class ServerLog {
  private readonly maxLines: number;
  private readonly kept: string[] = [];

  constructor(maxLines = 200) {
    this.maxLines = maxLines;
  }

  add(line: string): void {
    if (this.kept.length === this.maxLines) this.kept.shift();
    this.kept.push(line.length > 2_000 ? `${line.slice(0, 2_000)} …` : line);
  }

  get lines(): readonly string[] {
    return this.kept;
  }
}
