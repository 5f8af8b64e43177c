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
  /** The limit for the items of all servers together. */
  maxItems: number;
}

/** Where a public name or URI leads: a group (by its qualifier), and the servers' own name or URI. */
export interface Route {
  group: string;
  own: string;
  /** The qualifier in the request: of the group, or of one server in it. */
  qualifier: string;
  /** Set if the request names one server of the group. */
  server: string | undefined;
  /** The servers whose templates match, if no list has the URI; undefined if none matches. */
  among: readonly string[] | undefined;
  /** Whether the request is safe to retry. */
  isRepeatable: boolean;
}

/** A tool with all its names. */
export interface NamedTool {
  /** Undefined if a later tool of the same name hides it. */
  listed: string | undefined;
  /** `listed` if every model API accepts it, otherwise a name that they do accept. */
  modelSafe: string | undefined;
  qualified: string;
  qualifier: string;
  group: string;
  server: string;
  item: Item;
}

/** Everything that the servers in scope offer, merged. An immutable snapshot. */
export class Catalog {
  readonly lists: Record<ListName, Listing>;
  /** For the user: hidden names, and items over the limit. */
  readonly warnings: string[] = [];
  readonly leftOut: readonly string[];
  readonly namedTools: NamedTool[] = [];
  /** Routes of all names, listed or not. */
  readonly names: Readonly<Record<NamedKind, Map<string, Route>>> = { tools: new Map(), prompts: new Map() };
  /** For suggestions. Built when an unknown name is first requested. */
  private readonly near: Partial<Record<NamedKind, NearNames>> = {};
  private readonly separator: string;
  private readonly namePrefixes: NamePrefixes;
  /** By the qualifiers in URIs. */
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

  /** The route to the item that this group calls `own`, unless `name` belongs to another group. */
  routeTo(kind: NamedKind, name: string, group: string, own: string): Route | undefined {
    if (this.namePrefixes.areOfOther(name, group)) return undefined;
    for (const route of this.names[kind].values())
      if (route.group === group && route.own === own && route.server === undefined) return route;
    return undefined;
  }

  /** Suggests listed names for an unknown one. */
  similar(kind: NamedKind, name: string): readonly string[] {
    this.near[kind] ??= new NearNames(this.listedNames(kind), this.separator);
    return this.near[kind].to(name);
  }

  private *listedNames(kind: NamedKind): Generator<{ own: string; listed: string }> {
    const routes = [...this.names[kind]].filter(([, { server }]) => server === undefined);
    // The listed name is the last of each route.
    for (const [{ own }, listed] of new Map(routes.map(([name, route]) => [route, name])))
      yield { own, listed };
  }

  /** Resolves a public URI, or a server's own URI if only one group can own it. */
  resource(uri: string): Route | undefined {
    const known = parsePublicUri(uri);
    const target = known && this.targets.get(known.server);
    if (known !== undefined && target !== undefined) {
      const own = known.ownUri;
      // A server may return the public URI of another server's resource, which then gets a second prefix.
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
   * The qualifier for a URI in a response from `qualifier`: that of the URI's owner if only one other group lists it.
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
    // First, so that with `last-wins` they hide nothing.
    const unlisted = contributions.flatMap((contribution) => reservedNames(contribution, kind));
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
      // The listed name must be set last.
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

function reservedNames({ qualifier, prefix, reserved }: Contribution, kind: NamedKind): Named[] {
  return reserved[kind].map((name) => ({ server: qualifier, prefix, name, isAlias: false }));
}

/** Callers check every server that offers the tool: a hint counts only if all give it. */
function isHarmless({ annotations }: Item): boolean {
  const { readOnlyHint, idempotentHint } = (annotations ?? {}) as Item;
  return readOnlyHint === true || idempotentHint === true;
}
