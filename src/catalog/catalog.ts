import { type ListedItem, Listing } from './listing.ts';
import { type NamingRules, publicNames } from './names.ts';
import { parsePublicUri, publicUri, templateMatcher, uriPrefix } from './uris.ts';

type Item = Record<string, unknown>;

/** What one server brings into a catalog. */
export interface Contribution {
  server: string;
  prefix: string;
  tools: readonly Item[];
  resources: readonly Item[];
  templates: readonly Item[];
  prompts: readonly Item[];
}

export interface CatalogRules extends NamingRules {
  pageSize: number;
}

/** Where a public name or URI leads: the server, and what it calls the thing itself. */
export interface Route {
  server: string;
  own: string;
}

export type ListName = 'tools' | 'resources' | 'templates' | 'prompts';

/** Under this key of `_meta` every listed item says which server it is from. */
const SERVER_META_KEY = 'dev.switchboard/server';

/** Everything that the servers in scope offer, as one. A snapshot: it never changes, it is replaced. */
export class Catalog {
  readonly lists: Record<ListName, Listing>;
  /** What a user should know about: names that hide other names. */
  readonly warnings: string[] = [];
  private readonly tools = new Map<string, Route>();
  private readonly prompts = new Map<string, Route>();
  private readonly servers: Set<string>;
  private readonly resourceOwners = new Map<string, Set<string>>();
  private readonly templates: { server: string; matches: (uri: string) => boolean }[] = [];

  constructor(contributions: readonly Contribution[], rules: CatalogRules) {
    this.servers = new Set(contributions.map(({ server }) => server));
    this.lists = {
      tools: new Listing('tools', this.addNamed('tools', contributions, rules, this.tools), rules.pageSize),
      prompts: new Listing(
        'prompts',
        this.addNamed('prompts', contributions, rules, this.prompts),
        rules.pageSize,
      ),
      resources: new Listing('resources', this.addResources(contributions), rules.pageSize),
      templates: new Listing('resourceTemplates', this.addTemplates(contributions), rules.pageSize),
    };
  }

  tool(name: string): Route | undefined {
    return this.tools.get(name);
  }

  prompt(name: string): Route | undefined {
    return this.prompts.get(name);
  }

  /** The owner of a resource: by its public URI, or by the server's own one where only one server can be meant. */
  resource(uri: string): Route | undefined {
    const known = parsePublicUri(uri);
    if (known !== undefined && this.servers.has(known.server)) {
      const { server, ownUri } = known;
      // One server may hand out the public URI of another's resource, which is then under its own name.
      return (this.offers(server, ownUri) ? undefined : this.behind(ownUri)) ?? { server, own: ownUri };
    }
    const owners = this.resourceOwners.get(uri) ?? this.ownersByTemplate(uri);
    if (owners.size !== 1) return undefined;
    const [server] = owners;
    return { server: server!, own: uri };
  }

  private behind(uri: string): Route | undefined {
    const inner = parsePublicUri(uri);
    if (inner === undefined || !this.servers.has(inner.server)) return undefined;
    return { server: inner.server, own: inner.ownUri };
  }

  private offers(server: string, uri: string): boolean {
    return this.resourceOwners.get(uri)?.has(server) === true || this.ownersByTemplate(uri).has(server);
  }

  private ownersByTemplate(uri: string): Set<string> {
    return new Set(this.templates.filter(({ matches }) => matches(uri)).map(({ server }) => server));
  }

  private addNamed(
    kind: 'tools' | 'prompts',
    contributions: readonly Contribution[],
    rules: CatalogRules,
    routes: Map<string, Route>,
  ): ListedItem[] {
    const items = contributions.flatMap(({ server, prefix, [kind]: offered }) =>
      uniqueBy(offered, 'name').map(([name, item]) => ({ server, prefix, name, item })),
    );
    const names = publicNames(items, rules);
    const listed: ListedItem[] = [];
    items.forEach(({ server, name: own, item }, index) => {
      const { listed: name, qualified } = names[index]!;
      const route = { server, own };
      routes.set(qualified, route);
      if (name === undefined) {
        this.warnings.push(
          `${kind.slice(0, -1)} "${own}" of server "${server}" is hidden by a later one; call it "${qualified}"`,
        );
        return;
      }
      routes.set(name, route);
      listed.push({ server, key: own, bytes: itemBytes(item, server, { name }) });
    });
    return listed;
  }

  private addResources(contributions: readonly Contribution[]): ListedItem[] {
    return contributions.flatMap(({ server, resources }) =>
      uniqueBy(resources, 'uri').map(([uri, item]) => {
        const owners = this.resourceOwners.get(uri);
        if (owners === undefined) this.resourceOwners.set(uri, new Set([server]));
        else owners.add(server);
        return { server, key: uri, bytes: itemBytes(item, server, { uri: publicUri(server, uri) }) };
      }),
    );
  }

  private addTemplates(contributions: readonly Contribution[]): ListedItem[] {
    return contributions.flatMap(({ server, templates }) =>
      uniqueBy(templates, 'uriTemplate').map(([template, item]) => {
        this.templates.push({ server, matches: templateMatcher(template) });
        const uriTemplate = uriPrefix(server) + template;
        return { server, key: template, bytes: itemBytes(item, server, { uriTemplate }) };
      }),
    );
  }
}

/** Items that have the key, each key once: a server that lists something twice means the first. */
function uniqueBy(items: readonly Item[], key: string): [string, Item][] {
  const unique = new Map<string, Item>();
  for (const item of items) {
    const value = item[key];
    if (typeof value === 'string' && !unique.has(value)) unique.set(value, item);
  }
  return [...unique];
}

function itemBytes(item: Item, server: string, changed: Item): Buffer {
  const meta = typeof item._meta === 'object' && item._meta !== null ? item._meta : {};
  return Buffer.from(JSON.stringify({ ...item, ...changed, _meta: { ...meta, [SERVER_META_KEY]: server } }));
}
