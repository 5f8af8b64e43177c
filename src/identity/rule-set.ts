import { isAny, type Matcher, matcherOf } from './matchers.ts';
import { hintsOf, RuleIndex } from './rule-index.ts';
import { bySpecificity, type Item, type ItemKind, itemKinds, type Rule } from './rules.ts';
import { folded } from './spellings.ts';

const MAX_INDEXES = 4_096;

/**
 * The rules for one principal in one project. The most specific one decides; of equal ones, a denial does. But what is denied in
 * all projects, no project allows: an owner cannot undo what an administrator denies.
 */
export class RuleSet {
  private readonly ordered: readonly Matcher[];
  private readonly indexes = new Map<string, RuleIndex>();
  /** The rules of all projects, if some of the project might allow what they deny. */
  private readonly general: RuleSet | undefined;

  constructor(rules: readonly Rule[]) {
    this.ordered = rules.toSorted(bySpecificity).map(matcherOf);
    if (rules.some(({ effect, project }) => effect === 'allow' && project !== undefined)) {
      const general = rules.filter(({ project }) => project === undefined);
      if (general.some(({ effect }) => effect === 'deny')) this.general = new RuleSet(general);
    }
  }

  /** The rule that decides; undefined if none matches, so that the role decides. */
  decider(item: Item): Rule | undefined {
    const first = this.indexOf(item.kind, item.servers).decider(item);
    if (first?.effect !== 'allow' || first.project === undefined) return first;
    const general = this.general?.decider(item);
    return general?.effect === 'deny' ? general : first;
  }

  /** Whether the rules deny the item. */
  denies(item: Item): boolean {
    if (item.isListed === true)
      return this.indexOf(item.kind, item.servers).hides(item) || (this.general?.denies(item) ?? false);
    return this.decider(item)?.effect === 'deny';
  }

  /** Whether anything of a server may be visible: false if rules deny all of it, and none before them allows a part. */
  showsServer(servers: readonly string[]): boolean {
    return itemKinds.some(
      (kind) => this.showsKind(kind, servers) && (this.general?.showsKind(kind, servers) ?? true),
    );
  }

  private showsKind(kind: ItemKind, servers: readonly string[]): boolean {
    const decisive = this.indexOf(kind, servers).matchers.find((matcher) => {
      const { rule } = matcher;
      const isAllow = rule.effect === 'allow';
      const fits = kind === 'tool' ? isAllow || !hasConditions(rule) : matcher.fitsHints(hintsOf(kind, []));
      return fits && (isAllow || isAny(rule.name));
    });
    return decisive?.rule.effect !== 'deny';
  }

  private indexOf(kind: ItemKind, servers: readonly string[]): RuleIndex {
    const key = JSON.stringify([kind, ...servers]);
    let index = this.indexes.get(key);
    if (index === undefined) {
      const names = servers.map(folded);
      const isOfKind = ({ kind: needed }: Rule) => needed === undefined || needed === kind;
      const matchers = this.ordered.filter(
        (matcher) => isOfKind(matcher.rule) && matcher.isOfServers(servers, names),
      );
      index = new RuleIndex(kind, matchers);
      if (this.indexes.size >= MAX_INDEXES) this.indexes.clear();
      this.indexes.set(key, index);
    }
    return index;
  }
}

function hasConditions({ readOnly, destructive }: Rule): boolean {
  return readOnly !== undefined || destructive !== undefined;
}
