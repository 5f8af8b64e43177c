import { type EffectiveHint, type Matcher, Names } from './matchers.ts';
import { allOf, anyOf, isWithin, type Summary, type Text } from './patterns.ts';
import type { Hints, Item, ItemKind, Rule } from './rules.ts';

/** How many characters one decision may compare, which takes some milliseconds. */
const MAX_WORK = 4_000_000;
/** What it takes to compare the ends of a text with a pattern, in characters. */
const WORK_OF_ENDS = 16;
const MAX_KNOWN = 20_000;

/** A rule with patterns. */
interface Patterned {
  /** Its place in the order. */
  at: number;
  isDenial: boolean;
  /** What all of its patterns need. */
  needed: Summary;
}

/** The rules for one kind of items of one group, so that its items ask no others. */
export class RuleIndex {
  /** The one that decides first, first. */
  readonly matchers: readonly Matcher[];
  private readonly kind: ItemKind;
  private readonly isUri: boolean;
  /** Denials of exact names, folded, and permissions of exact names: by their places in the order. */
  private readonly denials = new Map<string, number[]>();
  private readonly permissions = new Map<string, number[]>();
  /** The other rules; undefined until an item is compared. */
  private patterned: readonly Patterned[] | undefined;
  private patternCount = 0;
  private searchCount = 0;
  /** Whether items are denied that lists have asked about, by hints and name. */
  private readonly known = new Map<number, Map<string, boolean>>();

  constructor(kind: ItemKind, matchers: readonly Matcher[]) {
    this.kind = kind;
    this.isUri = kind === 'resource';
    this.matchers = matchers;
  }

  /** The rule that decides; undefined if none matches. */
  decider(item: Item): Rule | undefined {
    if (this.matchers.length === 0) return undefined;
    const hints = hintsOf(this.kind, item.hints);
    const names = new Names(item);
    if (names.areStarts)
      return this.matchers.find((matcher) => matcher.fitsHints(hints) && matcher.isOfAll(names))?.rule;
    this.patterned ??= this.compile();
    if (this.workFor(names) > MAX_WORK) names.giveUp();
    if (names.all.length === 0)
      return this.matchers.find((matcher) => matcher.fitsHints(hints) && matcher.isNamed(names))?.rule;
    return this.firstOf(names, hints, this.patterned)?.rule;
  }

  /** Whether a list must not show the item. What it asked about once costs nothing when it is built again. */
  hides(item: Item): boolean {
    if (this.matchers.length === 0) return false;
    const hints = maskOf(hintsOf(this.kind, item.hints));
    let known = this.known.get(hints);
    if (known === undefined) {
      known = new Map();
      this.known.set(hints, known);
    }
    let isDenied = known.get(item.name);
    if (isDenied === undefined) {
      isDenied = this.decider(item)?.effect === 'deny';
      if (known.size >= MAX_KNOWN) known.clear();
      known.set(item.name, isDenied);
    }
    return isDenied;
  }

  private compile(): Patterned[] {
    const patterned: Patterned[] = [];
    for (const [at, matcher] of this.matchers.entries()) {
      const patterns = matcher.patterns(this.isUri);
      this.patternCount += patterns.length;
      for (const { isFloating, endsInSlash } of patterns)
        if (isFloating) this.searchCount += this.isUri && endsInSlash ? 2 : 1;
      if (this.addExact(matcher, at)) continue;
      const isDenial = matcher.rule.effect === 'deny';
      const needed = allOf(matcher.patterns(isDenial && this.isUri).map(({ summary }) => summary));
      patterned.push({ at, isDenial, needed });
    }
    return patterned;
  }

  /** False if it is a matter of patterns. */
  private addExact(matcher: Matcher, at: number): boolean {
    const isDenial = matcher.rule.effect === 'deny';
    const patterns = matcher.patterns(isDenial && this.isUri);
    if (!patterns.every(({ isExact }) => isExact)) return false;
    for (const { pattern } of patterns) {
      add(isDenial ? this.denials : this.permissions, pattern, at);
      if (isDenial && this.isUri && pattern.endsWith('/')) add(this.denials, pattern.slice(0, -1), at);
    }
    return true;
  }

  /** How many characters are compared at most. */
  private workFor({ all, folded }: Names): number {
    const length = Math.max(
      ...[all, folded].map((texts) => texts.reduce((sum, { text }) => sum + text.length, 0)),
    );
    return this.patternCount * all.length * WORK_OF_ENDS + this.searchCount * length;
  }

  private firstOf(
    names: Names,
    hints: readonly EffectiveHint[],
    patterned: readonly Patterned[],
  ): Matcher | undefined {
    const { matchers } = this;
    let first = matchers.length;
    for (const { text } of names.folded)
      for (const at of this.denials.get(text) ?? [])
        if (at < first && matchers[at]!.fitsHints(hints)) first = at;
    const matches = (at: number) => matchers[at]!.fitsHints(hints) && matchers[at]!.isNamed(names);
    for (const at of this.permissions.get(names.item.name) ?? []) if (at < first && matches(at)) first = at;
    const [folded, written] = [this.summaryOf(names.folded), this.summaryOf(names.all)];
    for (const { at, isDenial, needed } of patterned) {
      if (at > first) break;
      if (isWithin(needed, isDenial ? folded : written) && matches(at)) return matchers[at];
    }
    return matchers[first];
  }

  private summaryOf(texts: readonly Text[]): Summary {
    return anyOf(texts.map((text) => (this.isUri ? text.withSlash : text).summary));
  }
}

function add(places: Map<string, number[]>, name: string, at: number): void {
  const known = places.get(name);
  if (known === undefined) places.set(name, [at]);
  else known.push(at);
}

const harmless: readonly EffectiveHint[] = [{ readOnly: true, destructive: false }];
const unknown: readonly EffectiveHint[] = [{ readOnly: false, destructive: true }];

/** Prompts and resources only return data. A tool without annotations may do anything. */
export function hintsOf(kind: ItemKind, hints: readonly Hints[]): readonly EffectiveHint[] {
  if (kind !== 'tool') return harmless;
  if (hints.length === 0) return unknown;
  return hints.map(({ readOnlyHint, destructiveHint }) => {
    const readOnly = readOnlyHint === true;
    return { readOnly, destructive: destructiveHint === true || (!readOnly && destructiveHint !== false) };
  });
}

/** The same for hints that no rule tells apart. */
function maskOf(hints: readonly EffectiveHint[]): number {
  return hints.reduce(
    (mask, { readOnly, destructive }) => mask | (1 << (Number(readOnly) * 2 + Number(destructive))),
    0,
  );
}
