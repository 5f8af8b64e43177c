import { patternTest } from '../config/tool-patterns.ts';

/**
 * Which characters and pairs of neighbours a text has, as bits: one for each of as many classes. A pattern that has others
 * cannot match the text, which tells most patterns at once.
 */
export interface Summary {
  chars: number;
  low: number;
  high: number;
}

export class Text {
  readonly text: string;
  readonly summary: Summary;
  private slashed: Text | undefined;

  constructor(text: string) {
    this.text = text;
    this.summary = summaryOf([text]);
  }

  get withSlash(): Text {
    this.slashed ??= new Text(`${this.text}/`);
    return this.slashed;
  }
}

/** A pattern, ready to be compared with many texts. */
export class Pattern {
  readonly pattern: string;
  readonly summary: Summary;
  /** Whether it has parts that may be anywhere, so that texts have to be searched. */
  readonly isFloating: boolean;
  /** Whether it may match a text with a slash behind it, and not the text itself. */
  readonly endsInSlash: boolean;
  /** Whether it has no star. */
  readonly isExact: boolean;
  readonly test: (text: string) => boolean;

  constructor(pattern: string) {
    const parts = pattern.split('*');
    this.pattern = pattern;
    this.isExact = parts.length === 1;
    this.isFloating = parts.slice(1, -1).some((part) => part !== '');
    this.endsInSlash = parts.some((part) => part.endsWith('/'));
    this.test = patternTest(pattern);
    this.summary = summaryOf(parts);
  }

  matches({ text, summary }: Text): boolean {
    return isWithin(this.summary, summary) && this.test(text);
  }

  /** A folder is the same with and without a slash. */
  matchesUri(uri: Text): boolean {
    return this.matches(uri) || (this.endsInSlash && this.matches(uri.withSlash));
  }
}

/** Without duplicates. */
export function patternsOf(patterns: readonly string[]): readonly Pattern[] {
  return [...new Set(patterns)].map((pattern) => new Pattern(pattern));
}

export function isWithin(needed: Summary, { chars, low, high }: Summary): boolean {
  return ((needed.chars & ~chars) | (needed.low & ~low) | (needed.high & ~high)) === 0;
}

/** What one of them has. */
export function anyOf(summaries: readonly Summary[]): Summary {
  const any = { chars: 0, low: 0, high: 0 };
  for (const { chars, low, high } of summaries) {
    any.chars |= chars;
    any.low |= low;
    any.high |= high;
  }
  return any;
}

/** What all of them have. */
export function allOf(summaries: readonly Summary[]): Summary {
  const all = { chars: -1, low: -1, high: -1 };
  for (const { chars, low, high } of summaries) {
    all.chars &= chars;
    all.low &= low;
    all.high &= high;
  }
  return all;
}

function summaryOf(texts: readonly string[]): Summary {
  let [chars, low, high] = [0, 0, 0];
  for (const text of texts) {
    let before = 0;
    for (let at = 0; at < text.length; at++) {
      const mixed = Math.imul(text.charCodeAt(at), 0x9e3779b1);
      chars |= 1 << (mixed >>> 27);
      const pair = before + mixed;
      const bit = Math.imul(pair ^ (pair >>> 15), 0x2c1b3c6d) >>> 26;
      if (at > 0 && bit < 32) low |= 1 << bit;
      if (at > 0 && bit >= 32) high |= 1 << (bit - 32);
      before = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
    }
  }
  return { chars, low, high };
}
