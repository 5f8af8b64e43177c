interface Listed {
  own: string;
  listed: string;
}

const MAX_NEAR = 5;
/** The limit for names that differ in some characters. */
const MAX_MISTYPED = 3;
/** Longer names are not compared. */
const MAX_LENGTH = 64;
const MAX_COMPARED = 2_000;

/** Finds names that differ from an unknown one only in case, punctuation, prefix, or one or two characters. */
export class NearNames {
  private readonly bySpelling = new Map<string, string[]>();
  private readonly separator: string;

  constructor(names: Iterable<Listed>, separator: string) {
    this.separator = separator;
    for (const { own, listed } of names) {
      this.add(own, listed);
      if (listed !== own) this.add(listed, listed);
    }
  }

  to(name: string): readonly string[] {
    const end = name.lastIndexOf(this.separator);
    const own = end === -1 ? name : name.slice(end + this.separator.length);
    const spellings = new Set([spelling(name), spelling(own)]);
    for (const one of spellings) if (this.bySpelling.has(one)) return this.bySpelling.get(one)!;
    for (const one of spellings) {
      const found = this.mistyped(one);
      if (found.length > 0) return found;
    }
    return [];
  }

  /** Those with the smallest edit distance. */
  private mistyped(name: string): string[] {
    if (name.length > MAX_LENGTH) return [];
    let most = mostMistakes(name);
    let left = MAX_COMPARED;
    const nearest = new Set<string>();
    for (const [other, listed] of this.bySpelling) {
      if (most === 0 || left === 0) break;
      if (other.length > MAX_LENGTH || Math.abs(other.length - name.length) > most) continue;
      left--;
      const distance = editDistance(name, other, most);
      if (distance === undefined) continue;
      if (distance < most) nearest.clear();
      most = distance;
      for (const one of listed) nearest.add(one);
    }
    return [...nearest].slice(0, MAX_MISTYPED);
  }

  private add(name: string, listed: string): void {
    const key = spelling(name);
    const same = this.bySpelling.get(key);
    if (same === undefined) this.bySpelling.set(key, [listed]);
    else if (same.length < MAX_NEAR && !same.includes(listed)) same.push(listed);
  }
}

/** Ignores case and punctuation. */
function spelling(name: string): string {
  return name.replace(/[^\p{L}\p{N}]/gu, '').toLowerCase() || name;
}

/** Short names resemble too many others. */
function mostMistakes({ length }: string): number {
  if (length < 3) return 0;
  return length < 5 ? 1 : 2;
}

/** The Damerau-Levenshtein distance; undefined if it is over `most`. */
export function editDistance(one: string, other: string, most: number): number | undefined {
  if (Math.abs(one.length - other.length) > most) return undefined;
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let line = 1; line <= one.length; line++) {
    const next = [line];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[line - 1] === other[column - 1];
      let least = Math.min(row[column - 1]! + (isSame ? 0 : 1), row[column]! + 1, next[column - 1]! + 1);
      const isExchanged = one[line - 1] === other[column - 2] && one[line - 2] === other[column - 1];
      if (line > 1 && column > 1 && isExchanged) least = Math.min(least, before[column - 2]! + 1);
      next.push(least);
    }
    if (Math.min(...next) > most) return undefined;
    [before, row] = [row, next];
  }
  const distance = row.at(-1)!;
  return distance > most ? undefined : distance;
}
