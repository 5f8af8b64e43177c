const MASK = '***';
/** The search pattern contains only this many characters of each text, so that it stays small. */
const BEGINNING = 4;

/** Masks all occurrences of the given texts. Texts shorter than `BEGINNING` are ignored. */
export class Mask {
  private readonly beginning: RegExp;
  /** Longest first. */
  private readonly byBeginning: Map<string, string[]>;

  constructor(texts: Iterable<string>) {
    const longestFirst = [...new Set(texts)]
      .filter((text) => text.length >= BEGINNING)
      .toSorted((left, right) => right.length - left.length);
    this.byBeginning = Map.groupBy(longestFirst, (text) => text.slice(0, BEGINNING));
    const beginnings = [...this.byBeginning.keys()].map((text) => RegExp.escape(text));
    this.beginning = new RegExp(beginnings.join('|') || '(?!)', 'g');
  }

  apply(text: string): string {
    let clean = '';
    let cleanTo = 0;
    for (const { start, end } of this.matches(text)) {
      clean += `${text.slice(cleanTo, start)}${MASK}`;
      cleanTo = end;
    }
    return clean + text.slice(cleanTo);
  }

  /** Overlapping matches are merged. */
  private matches(text: string): { start: number; end: number }[] {
    const matches: { start: number; end: number }[] = [];
    this.beginning.lastIndex = 0;
    for (let hit = this.beginning.exec(text); hit !== null; hit = this.beginning.exec(text)) {
      const start = hit.index;
      this.beginning.lastIndex = start + 1;
      const found = this.byBeginning.get(hit[0])!.find((candidate) => text.startsWith(candidate, start));
      if (found === undefined) continue;
      const end = start + found.length;
      const before = matches.at(-1);
      if (before !== undefined && start < before.end) before.end = Math.max(before.end, end);
      else matches.push({ start, end });
    }
    return matches;
  }
}
