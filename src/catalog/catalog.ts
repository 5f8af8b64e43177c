import type { Contribution, ListName, NamedKind } from './contribution.ts';
import { aliases, sharedItems } from './contribution.ts';
import { cut } from './cut.ts';
import { type Item, LazyItem } from './lazy-item.ts';
import { type ListedItem, Listing } from './listing.ts';
import { type NamePrefixes, qualifiedOf } from './name-prefixes.ts';
import { isModelSafe, type Named, type NamingRules, namePrefixesOf, publicNames } from './names.ts';
import { NearNames } from './near-names.ts';
import { parsePublicUri, publicUri, templateMatcher } from './uris.ts';

export interface CatalogRules extends NamingRules {
  pageSize: number;
  /** How much of what all servers offer is taken. */
  maxItems: number;
}

/** Where a public name or URI leads: the group, by its qualifier, and what its servers call the thing themselves. */
export interface Route {
  group: string;
  own: string;
  /** The qualifier under which it was asked for: that of the group, or of one server in it. */
  qualifier: string;
  /** Where one server of the group was named. */
  server: string | undefined;
  /** The servers of the group that have it, where only a template tells; undefined where their lists do, or nothing does. */
  among: readonly string[] | undefined;
  /** Whether it does no harm to ask for it twice. */
  isRepeatable: boolean;
}

/** A tool under all of its names. */
export interface NamedTool {
  /** Undefined where a later one of the same name hides it. */
  listed: string | undefined;
  /** The same where it fits the API of every model, else a name that does. */
  modelSafe: string | undefined;
  qualified: string;
  qualifier: string;
  group: string;
  server: string;
  /** As its server describes it. */
  item: Item;
}

/** Everything that the servers in scope offer, as one. A snapshot: it never changes, it is replaced. */
export class Catalog {
  readonly lists: Record<ListName, Listing>;
  /** What a user should know about: names that hide other names, and what there was no room for. */
  readonly warnings: string[] = [];
  readonly leftOut: readonly string[];
  readonly namedTools: NamedTool[] = [];
  /** Where each name leads, listed or not. */
  readonly names: Readonly<Record<NamedKind, Map<string, Route>>> = { tools: new Map(), prompts: new Map() };
  /** Listed names that look like others. Nobody needs them unless somebody asks for what is not there. */
  private readonly near: Partial<Record<NamedKind, NearNames>> = {};
  private readonly separator: string;
  private readonly namePrefixes: NamePrefixes;
  /** The group that a name in a URI stands for, and the server of it, where it is one. */
  private readonly targets = new Map<string, Target>();
  private readonly resourceOwners = new Map<string, Set<string>>();
  private readonly templates: {
    group: string;
    servers: readonly string[];
    matches: (uri: string) => boolean;
  }[] = [];
  /** Groups of several servers. */
  private readonly shared: ReadonlySet<string>;

  constructor(offered: readonly Contribution[], rules: CatalogRules) {
    const { taken: contributions, leftOut } = cut(offered, rules.maxItems);
    this.leftOut = leftOut;
    this.separator = rules.separator;
    this.namePrefixes = namePrefixesOf(contributions.flatMap(qualifiedOf), rules.separator);
    this.shared = new Set(
      contributions.filter(({ servers }) => servers.length > 1).map(({ qualifier }) => qualifier),
    );
    for (const { qualifier: group, servers } of contributions) {
      for (const { server, qualifier } of servers) this.targets.set(qualifier, { group, qualifier, server });
    }
    for (const { qualifier } of contributions)
      this.targets.set(qualifier, { group: qualifier, qualifier, server: undefined });
    this.lists = {
      tools: new Listing('tools', this.addNamed('tools', contributions, rules), rules.pageSize),
      prompts: new Listing('prompts', this.addNamed('prompts', contributions, rules), rules.pageSize),
      resources: new Listing('resources', this.addResources(contributions), rules.pageSize),
      templates: new Listing('resourceTemplates', this.addTemplates(contributions), rules.pageSize),
    };
  }

  tool(name: string): Route | undefined {
    return this.names.tools.get(name);
  }

  prompt(name: string): Route | undefined {
    return this.names.prompts.get(name);
  }

  /** The way to what a group calls that, where `name` can stand for it. */
  routeTo(kind: NamedKind, name: string, group: string, own: string): Route | undefined {
    if (this.namePrefixes.areOfOther(name, group)) return undefined;
    for (const route of this.names[kind].values())
      if (route.group === group && route.own === own && route.server === undefined) return route;
    return undefined;
  }

  /** Listed names that look like one that is not there. */
  similar(kind: NamedKind, name: string): readonly string[] {
    this.near[kind] ??= new NearNames(this.listedNames(kind), this.separator);
    return this.near[kind].to(name);
  }

  private *listedNames(kind: NamedKind): Generator<{ own: string; listed: string }> {
    const ways = [...this.names[kind]].filter(([, { server }]) => server === undefined);
    // Of its two names the one that is listed comes last.
    for (const [{ own }, listed] of new Map(ways.map(([name, route]) => [route, name])))
      yield { own, listed };
  }

  /** The owner of a resource: by its public URI, or by the server's own one where only one owner can be meant. */
  resource(uri: string): Route | undefined {
    const known = parsePublicUri(uri);
    const target = known && this.targets.get(known.server);
    if (known !== undefined && target !== undefined) {
      const own = known.ownUri;
      // One server may hand out the public URI of another's resource, which is then under its own name.
      const behind = this.behind(own);
      return behind !== undefined && !this.offers(target.group, own)
        ? behind
        : this.resourceRoute(target, own);
    }
    const owners = this.resourceOwners.get(uri) ?? this.ownersByTemplate(uri);
    if (owners.size !== 1) return undefined;
    const group = [...owners][0]!;
    return this.resourceRoute({ group, qualifier: group, server: undefined }, uri);
  }

  /**
   * Under which qualifier a URI is public that an answer from `qualifier` mentions: that of its owner, where only one other group
   * lists it.
   */
  linkQualifier(uri: string, qualifier: string): string {
    const owners = this.resourceOwners.get(uri);
    if (owners === undefined || owners.size > 1) return qualifier;
    const group = this.targets.get(qualifier)?.group;
    return group !== undefined && this.offers(group, uri) ? qualifier : [...owners][0]!;
  }

  private behind(uri: string): Route | undefined {
    const inner = parsePublicUri(uri);
    const target = inner && this.targets.get(inner.server);
    return target && this.resourceRoute(target, inner.ownUri);
  }

  private resourceRoute(target: Target, own: string): Route {
    const isListed =
      !this.shared.has(target.group) || this.resourceOwners.get(own)?.has(target.group) === true;
    const likely = isListed ? [] : this.templates.filter(({ group }) => group === target.group);
    const among = likely.filter(({ matches }) => matches(own)).flatMap(({ servers }) => servers);
    return { ...target, own, among: among.length === 0 ? undefined : among, isRepeatable: true };
  }

  private offers(group: string, uri: string): boolean {
    return this.resourceOwners.get(uri)?.has(group) === true || this.ownersByTemplate(uri).has(group);
  }

  private ownersByTemplate(uri: string): Set<string> {
    return new Set(this.templates.filter(({ matches }) => matches(uri)).map(({ group }) => group));
  }

  private addNamed(
    kind: NamedKind,
    contributions: readonly Contribution[],
    rules: CatalogRules,
  ): ListedItem[] {
    const routes = this.names[kind];
    const entries = contributions.flatMap((contribution) => [
      ...sharedItems(contribution, kind, 'name').map((item) => ({ contribution, ...item, alias: undefined })),
      ...aliases(contribution, kind),
    ]);
    // First, so that they hide nothing where a later name hides an earlier one.
    const unlisted = kind === 'tools' ? contributions.flatMap(switchedOffTools) : [];
    const named = entries.map(({ contribution, key, alias }) =>
      alias === undefined
        ? { server: contribution.qualifier, prefix: contribution.prefix, name: key, isAlias: false }
        : { server: alias.qualifier, prefix: alias.prefix, name: key, isAlias: true },
    );
    const names = publicNames([...unlisted, ...named], rules, this.namePrefixes).slice(unlisted.length);
    const listed: ListedItem[] = [];
    entries.forEach(({ contribution, key, items, alias }, index) => {
      const { listed: name, qualified, fitted } = names[index]!;
      const { qualifier: group } = contribution;
      const isRepeatable = kind === 'prompts' || items.every(({ item }) => isHarmless(item));
      const qualifier = alias?.qualifier ?? group;
      const route = { group, own: key, qualifier, server: alias?.server, among: undefined, isRepeatable };
      // Of several names the listed one comes last.
      if (fitted !== undefined) routes.set(fitted, route);
      routes.set(qualified, route);
      if (alias !== undefined) return;
      if (kind === 'tools') {
        const modelSafe = name === undefined || isModelSafe(name) ? name : (fitted ?? qualified);
        const shown = { listed: name, modelSafe, qualified, qualifier, group: contribution.group };
        this.namedTools.push({ ...shown, ...items[0]! });
      }
      if (name === undefined) {
        this.warnings.push(
          `${kind.slice(0, -1)} "${key}" of server "${contribution.group}" is hidden by a later one; call it "${qualified}"`,
        );
        return;
      }
      routes.set(name, route);
      listed.push(new LazyItem(group, key, items[0]!, contribution, { name }));
    });
    return listed;
  }

  private addResources(contributions: readonly Contribution[]): ListedItem[] {
    return contributions.flatMap((contribution) =>
      sharedItems(contribution, 'resources', 'uri').map(({ key: uri, items }) => {
        const { qualifier: group } = contribution;
        const owners = this.resourceOwners.get(uri);
        if (owners === undefined) this.resourceOwners.set(uri, new Set([group]));
        else owners.add(group);
        return new LazyItem(group, uri, items[0]!, contribution, { uri: publicUri(group, uri) });
      }),
    );
  }

  private addTemplates(contributions: readonly Contribution[]): ListedItem[] {
    return contributions.flatMap((contribution) =>
      sharedItems(contribution, 'templates', 'uriTemplate').map(({ key: template, items }) => {
        const { qualifier: group } = contribution;
        const servers = items.map(({ server }) => server);
        this.templates.push({ group, servers, matches: templateMatcher(template) });
        const uriTemplate = publicUri(group, template);
        return new LazyItem(group, template, items[0]!, contribution, { uriTemplate });
      }),
    );
  }
}

type Target = Pick<Route, 'group' | 'qualifier' | 'server'>;

function switchedOffTools({ qualifier, prefix, switchedOff }: Contribution): Named[] {
  return switchedOff.map((name) => ({ server: qualifier, prefix, name, isAlias: false }));
}

/** What a tool says of itself counts only as far as everybody who offers it says so. */
function isHarmless({ annotations }: Item): boolean {
  const { readOnlyHint, idempotentHint } = (annotations ?? {}) as Item;
  return readOnlyHint === true || idempotentHint === true;
}
