import { Pattern, patternsOf, Text } from './patterns.ts';
import type { Item, Rule } from './rules.ts';
import { folded, looseSpellings, spellings } from './spellings.ts';
import { startsOf, startsOfTemplate } from './template-starts.ts';

/** Honest names and URIs are shorter. What is longer cannot be read, which denials match. */
const LONGEST_NAME = 2 * 1024;

/** What servers may take the name of an item for, found out when a rule asks: most rules are about other kinds or servers. */
export class Names {
  readonly item: Item;
  private found: readonly Text[] | undefined;
  private foundFolded: readonly Text[] | undefined;

  constructor(item: Item) {
    this.item = item;
  }

  /** Whether they are what names begin with, and the item stands for all of these. */
  get areStarts(): boolean {
    return this.item.revealsAll === true && this.item.kind === 'resource';
  }

  /** None if nobody can tell. */
  get all(): readonly Text[] {
    this.found ??= this.spelled().map((name) => new Text(name));
    return this.found;
  }

  get folded(): readonly Text[] {
    this.foundFolded ??= [...new Set(this.all.map(({ text }) => folded(text)))].map((name) => new Text(name));
    return this.foundFolded;
  }

  /** Treats the name as one that cannot be read. */
  giveUp(): void {
    [this.found, this.foundFolded] = [[], []];
  }

  private spelled(): readonly string[] {
    const { kind, name, input } = this.item;
    if (this.areStarts) return startsOfTemplate(name, input);
    if (name.length > LONGEST_NAME) return [];
    return kind === 'resource' ? (looseSpellings(name) ?? []) : [name];
  }
}

/** A rule, ready to be compared with items. */
export abstract class Matcher {
  readonly rule: Rule;
  private compiled: readonly Pattern[] | undefined;
  private compiledUris: readonly Pattern[] | undefined;

  constructor(rule: Rule) {
    this.rule = rule;
  }

  /** `foldedServers`: the same servers. */
  abstract isOfServers(servers: readonly string[], foldedServers: readonly string[]): boolean;
  abstract fitsHints(hints: readonly EffectiveHint[]): boolean;
  abstract isNamed(names: Names): boolean;
  /** Whether it decides about everything that begins with these names, together. */
  abstract isOfAll(starts: Names): boolean;

  /** What names are compared with. */
  patterns(isUri: boolean): readonly Pattern[] {
    if (isUri) this.compiledUris ??= patternsOf(this.uris());
    else this.compiled ??= patternsOf([this.written()]);
    return isUri ? this.compiledUris! : this.compiled!;
  }

  protected abstract written(): string;
  protected abstract uris(): readonly string[];
}

/** Matches if any reading of the item does, in any case. */
class Denial extends Matcher {
  private readonly server = new Pattern(folded(this.rule.server));
  private starts: readonly string[] | undefined;

  override isOfServers(_servers: readonly string[], foldedServers: readonly string[]): boolean {
    return foldedServers.some((server) => this.server.test(server));
  }

  override fitsHints(hints: readonly EffectiveHint[]): boolean {
    return hints.some((hint) => fitsHint(this.rule, hint));
  }

  override isNamed({ item, folded: names }: Names): boolean {
    if (names.length === 0) return true;
    const isUri = item.kind === 'resource';
    for (const pattern of this.patterns(isUri))
      for (const name of names) if (isUri ? pattern.matchesUri(name) : pattern.matches(name)) return true;
    return false;
  }

  override isOfAll({ folded: texts }: Names): boolean {
    this.starts ??= [...new Set(this.spelled().map(literalStart))].flatMap((start) =>
      startsOf(start).map(folded),
    );
    return texts.some(({ text }) =>
      this.starts!.some((start) => start.startsWith(text) || text.startsWith(start)),
    );
  }

  protected override written(): string {
    return folded(this.rule.name);
  }

  protected override uris(): readonly string[] {
    return this.spelled().map(folded);
  }

  private spelled(): readonly string[] {
    return spellings(this.rule.name) ?? [this.rule.name];
  }
}

/** Matches the name as it is written, and only if every reading of the item fits. */
class Permission extends Matcher {
  private readonly server = new Pattern(this.rule.server);

  override isOfServers([group, ...members]: readonly string[]): boolean {
    const isOfServer = (server: string) => this.server.test(server);
    return isOfServer(group!) || (members.length > 0 && members.every(isOfServer));
  }

  override fitsHints(hints: readonly EffectiveHint[]): boolean {
    return hints.every((hint) => fitsHint(this.rule, hint));
  }

  override isNamed({ item, all }: Names): boolean {
    // The first reading is the name itself.
    if (all.length === 0 || !this.patterns(false)[0]!.matches(all[0]!)) return false;
    if (item.kind !== 'resource') return true;
    const uris = this.patterns(true);
    return all.every((text) => uris.some((uri) => uri.matchesUri(text)));
  }

  override isOfAll({ all }: Names): boolean {
    const { name } = this.rule;
    const start = literalStart(name);
    if (start === name || !isAny(name.slice(start.length))) return false;
    const starts = startsOf(start);
    return (
      all[0]!.text.startsWith(start) && all.every(({ text }) => starts.some((own) => text.startsWith(own)))
    );
  }

  protected override written(): string {
    return this.rule.name;
  }

  protected override uris(): readonly string[] {
    return looseSpellings(this.rule.name) ?? [this.rule.name];
  }
}

/** Most rules are in the sets of many principals and projects. */
const matchers = new WeakMap<Rule, Matcher>();

export function matcherOf(rule: Rule): Matcher {
  let matcher = matchers.get(rule);
  if (matcher === undefined) {
    matcher = rule.effect === 'deny' ? new Denial(rule) : new Permission(rule);
    matchers.set(rule, matcher);
  }
  return matcher;
}

export function isAny(pattern: string): boolean {
  return /^\*+$/.test(pattern);
}

function literalStart(pattern: string): string {
  return pattern.split('*', 1)[0]!;
}

export interface EffectiveHint {
  readOnly: boolean;
  destructive: boolean;
}

function fitsHint(rule: Rule, hint: EffectiveHint): boolean {
  return (
    (rule.readOnly === undefined || rule.readOnly === hint.readOnly) &&
    (rule.destructive === undefined || rule.destructive === hint.destructive)
  );
}
