import { setTimeout as delay } from 'node:timers/promises';
import { Catalog, type CatalogRules, type ListName } from '../catalog/catalog.ts';
import type { OfferKind } from '../upstreams/discovery.ts';
import type { Server } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';

export interface ScopeSettings extends CatalogRules {
  discoveryWaitMs: number;
}

/** Changes that come this close together are one change for clients. */
const COALESCE_MS = 20;

/** The servers that a client sees, and the catalog of what they offer: always the newest snapshot. */
export class Scope {
  readonly servers: Servers;
  private settings: ScopeSettings;
  private readonly announce: (lists: ListName[], warnings: string[]) => void;
  private snapshot: Catalog | undefined;
  private readonly changed = new Set<ListName>();
  private pending: NodeJS.Timeout | undefined;

  constructor(
    servers: Servers,
    settings: ScopeSettings,
    announce: (lists: ListName[], warnings: string[]) => void,
  ) {
    this.servers = servers;
    this.settings = settings;
    this.announce = announce;
  }

  get catalog(): Catalog {
    this.snapshot ??= new Catalog(this.servers.all().map(contribution), this.settings);
    return this.snapshot;
  }

  /** Something changed: the next look at the catalog sees it, and clients are told soon, once for each list. */
  changes(kinds: readonly OfferKind[]): void {
    this.snapshot = undefined;
    for (const kind of kinds) this.changed.add(kind);
    this.pending ??= setTimeout(() => this.tell(), COALESCE_MS);
  }

  configure(settings: ScopeSettings): void {
    this.settings = settings;
    this.snapshot = undefined;
  }

  /**
   * Settles when every server has been seen once, or after the set time. Servers that were seen before are not
   * waited for, connected or not.
   */
  async discovered(): Promise<void> {
    const unseen = this.unseen();
    if (unseen.length === 0) return;
    const patience = new AbortController();
    const enough = delay(this.settings.discoveryWaitMs, undefined, { signal: patience.signal }).catch(
      () => {},
    );
    await Promise.race([Promise.all(unseen.map((server) => server.discover())), enough]);
    patience.abort();
  }

  get isDiscovered(): boolean {
    return this.unseen().length === 0;
  }

  close(): void {
    clearTimeout(this.pending);
  }

  private unseen(): Server[] {
    return this.servers.all().filter((server) => server.isUnseen);
  }

  private tell(): void {
    this.pending = undefined;
    const lists = [...this.changed];
    this.changed.clear();
    this.announce(lists, this.catalog.warnings);
  }
}

function contribution({ config, offer }: Server) {
  const { tools = [], resources = [], templates = [], prompts = [] } = offer ?? {};
  return { server: config.name, prefix: config.prefix ?? config.name, tools, resources, templates, prompts };
}
