import { allowedBy } from '../config/tool-patterns.ts';
import { bySpecificity, type Hints, type Item, type ItemKind, itemKinds, type Rule } from './rules.ts';
import { folded, looseSpellings, spellings } from './spellings.ts';
import { startsOf, startsOfTemplate } from './template-starts.ts';

/** The rules for one principal in one project. The most specific one decides; of equal ones, a denial does. */
export class RuleSet {
  private readonly ordered: readonly Matcher[];

  constructor(rules: readonly Rule[]) {
    this.ordered = rules.toSorted(bySpecificity).map(matcherOf);
  }

  /** The rule that decides; undefined if none matches, so that the role decides. */
  decider(item: Item): Rule | undefined {
    const hints = hintsOf(item.kind, item.hints);
    const names = new Names(item);
    return this.ordered.find(
      (matcher) =>
        isOfKind(matcher.rule, item.kind) &&
        matcher.isOfServers(item.servers) &&
        matcher.fitsHints(hints) &&
        (names.areStarts ? matcher.isOfAll(names) : matcher.isNamed(names)),
    )?.rule;
  }

  /** Whether anything of a server may be visible: false if rules deny all of it, and none before them allows a part. */
  showsServer(servers: readonly string[]): boolean {
    return itemKinds.some((kind) => {
      const decisive = this.ordered.find((matcher) => {
        const { rule } = matcher;
        const isAllow = rule.effect === 'allow';
        const fits = kind === 'tool' ? isAllow || !hasConditions(rule) : matcher.fitsHints(hintsOf(kind, []));
        return isOfKind(rule, kind) && matcher.isOfServers(servers) && fits && (isAllow || isAny(rule.name));
      });
      return decisive?.rule.effect !== 'deny';
    });
  }
}

/** What servers may take the name of an item for, found out when a rule asks: most rules are about other kinds or servers. */
class Names {
  readonly item: Item;
  private found: readonly string[] | undefined;
  private foundFolded: readonly string[] | undefined;

  constructor(item: Item) {
    this.item = item;
  }

  /** Whether they are what names begin with, and the item stands for all of these. */
  get areStarts(): boolean {
    return this.item.revealsAll === true && this.item.kind === 'resource';
  }

  /** None if nobody can tell. */
  get all(): readonly string[] {
    this.found ??= this.spelled();
    return this.found;
  }

  get folded(): readonly string[] {
    this.foundFolded ??= this.all.map(folded);
    return this.foundFolded;
  }

  private spelled(): readonly string[] {
    const { kind, name, input } = this.item;
    if (kind !== 'resource') return [name];
    return this.areStarts ? startsOfTemplate(name, input) : (looseSpellings(name) ?? []);
  }
}

/** A rule, ready to be compared with items. */
abstract class Matcher {
  readonly rule: Rule;

  constructor(rule: Rule) {
    this.rule = rule;
  }

  abstract isOfServers(servers: readonly string[]): boolean;
  abstract fitsHints(hints: readonly EffectiveHint[]): boolean;
  abstract isNamed(names: Names): boolean;
  /** Whether it decides about everything that begins with these names, together. */
  abstract isOfAll(starts: Names): boolean;
}

/** Matches if any reading of the item does, in any case. */
class Denial extends Matcher {
  private readonly isServer = matching([folded(this.rule.server)]);
  private readonly isName = matching([folded(this.rule.name)]);
  private isUri: Test | undefined;
  private starts: readonly string[] | undefined;

  override isOfServers(servers: readonly string[]): boolean {
    return servers.some((server) => this.isServer(folded(server)));
  }

  override fitsHints(hints: readonly EffectiveHint[]): boolean {
    return hints.some((hint) => fitsHint(this.rule, hint));
  }

  override isNamed({ item, folded: names }: Names): boolean {
    if (item.kind !== 'resource') return names.some(this.isName);
    this.isUri ??= withFinalSlash(matching(this.patterns().map(folded)));
    return names.length === 0 || names.some(this.isUri);
  }

  override isOfAll({ folded: texts }: Names): boolean {
    this.starts ??= this.patterns().flatMap((pattern) => startsOf(literalStart(pattern)).map(folded));
    return texts.some((text) =>
      this.starts!.some((start) => start.startsWith(text) || text.startsWith(start)),
    );
  }

  private patterns(): readonly string[] {
    return spellings(this.rule.name) ?? [this.rule.name];
  }
}

/** Matches the name as it is written, and only if every reading of the item fits. */
class Permission extends Matcher {
  private readonly isServer = matching([this.rule.server]);
  private readonly isName = matching([this.rule.name]);
  private isUri: Test | undefined;

  override isOfServers([group, ...members]: readonly string[]): boolean {
    return this.isServer(group!) || (members.length > 0 && members.every(this.isServer));
  }

  override fitsHints(hints: readonly EffectiveHint[]): boolean {
    return hints.every((hint) => fitsHint(this.rule, hint));
  }

  override isNamed({ item, all }: Names): boolean {
    if (!this.isName(item.name)) return false;
    if (item.kind !== 'resource') return true;
    this.isUri ??= withFinalSlash(matching(looseSpellings(this.rule.name) ?? [this.rule.name]));
    return all.length > 0 && all.every(this.isUri);
  }

  override isOfAll({ all }: Names): boolean {
    const { name } = this.rule;
    const start = literalStart(name);
    if (start === name || !isAny(name.slice(start.length))) return false;
    const starts = startsOf(start);
    return all[0]!.startsWith(start) && all.every((text) => starts.some((own) => text.startsWith(own)));
  }
}

/** Most rules are in the sets of many principals and projects. */
const matchers = new WeakMap<Rule, Matcher>();

function matcherOf(rule: Rule): Matcher {
  let matcher = matchers.get(rule);
  if (matcher === undefined) {
    matcher = rule.effect === 'deny' ? new Denial(rule) : new Permission(rule);
    matchers.set(rule, matcher);
  }
  return matcher;
}

type Test = (text: string) => boolean;

function matching(patterns: readonly string[]): Test {
  if (patterns.some(isAny)) return () => true;
  const matches = allowedBy(patterns);
  return (name) => matches({ name });
}

/** A folder is the same with and without a slash. */
function withFinalSlash(isUri: Test): Test {
  return (uri) => isUri(uri) || isUri(`${uri}/`);
}

function isAny(pattern: string): boolean {
  return /^\*+$/.test(pattern);
}

function literalStart(pattern: string): string {
  return pattern.split('*', 1)[0]!;
}

function isOfKind(rule: Rule, kind: ItemKind): boolean {
  return rule.kind === undefined || rule.kind === kind;
}

interface EffectiveHint {
  readOnly: boolean;
  destructive: boolean;
}

const harmless: readonly EffectiveHint[] = [{ readOnly: true, destructive: false }];
const unknown: readonly EffectiveHint[] = [{ readOnly: false, destructive: true }];

/** Prompts and resources only return data. A tool without annotations may do anything. */
function hintsOf(kind: ItemKind, hints: readonly Hints[]): readonly EffectiveHint[] {
  if (kind !== 'tool') return harmless;
  if (hints.length === 0) return unknown;
  return hints.map(({ readOnlyHint, destructiveHint }) => {
    const readOnly = readOnlyHint === true;
    return { readOnly, destructive: destructiveHint === true || (!readOnly && destructiveHint !== false) };
  });
}

function hasConditions({ readOnly, destructive }: Rule): boolean {
  return readOnly !== undefined || destructive !== undefined;
}

function fitsHint(rule: Rule, hint: EffectiveHint): boolean {
  return (
    (rule.readOnly === undefined || rule.readOnly === hint.readOnly) &&
    (rule.destructive === undefined || rule.destructive === hint.destructive)
  );
}
