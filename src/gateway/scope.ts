import { setTimeout as delay } from 'node:timers/promises';
import { Catalog, type CatalogRules, type Contribution, type ListName } from '../catalog/catalog.ts';
import type { Offer, OfferKind } from '../upstreams/discovery.ts';
import type { Group } from '../upstreams/group.ts';
import type { Server } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { AbsentServer } from './resolve.ts';

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
  /** Until when lists wait for a server that was never seen. */
  private readonly deadlines = new WeakMap<Server, number>();

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
    this.snapshot ??= new Catalog(this.servers.groups().map(contribution), this.settings);
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

  /** Settles when every server has been seen once, or after the set time; undefined where all have been. */
  discovered(): Promise<void> | undefined {
    return this.waitFor(() => Date.now() + this.settings.discoveryWaitMs);
  }

  /** The same for lists, which many clients ask for again and again: each server delays them only once. */
  listable(): Promise<void> | undefined {
    return this.waitFor((server) => this.deadlineOf(server));
  }

  /** The servers that were never seen: nobody knows what they offer. */
  absent(): AbsentServer[] {
    return this.servers
      .all()
      .filter(({ replicas }) => replicas.every(({ isSeen }) => !isSeen))
      .map(({ name, config, condition }) => ({
        name,
        qualifier: (config.prefix ?? name) + this.settings.separator,
        why: condition.reason?.message ?? `Server "${name}" has not said yet what it offers.`,
      }));
  }

  close(): void {
    clearTimeout(this.pending);
  }

  /** Starts servers that were never seen. Others are not waited for, connected or not. */
  private waitFor(deadlineOf: (server: Server) => number): Promise<void> | undefined {
    const now = Date.now();
    const awaited: Promise<void>[] = [];
    let last = now;
    for (const server of this.servers.all()) {
      if (!server.isUnseen) continue;
      const seen = server.seen();
      const deadline = deadlineOf(server);
      if (deadline <= now) continue;
      awaited.push(seen);
      last = Math.max(last, deadline);
    }
    return awaited.length === 0 ? undefined : allWithin(awaited, last - now);
  }

  private deadlineOf(server: Server): number {
    const known = this.deadlines.get(server);
    if (known !== undefined) return known;
    const deadline = Date.now() + this.settings.discoveryWaitMs;
    this.deadlines.set(server, deadline);
    return deadline;
  }

  private tell(): void {
    this.pending = undefined;
    const lists = [...this.changed];
    this.changed.clear();
    this.announce(lists, this.catalog.warnings);
  }
}

function contribution({ name, members }: Group): Contribution {
  const [first] = members;
  const isOne = members.length === 1 && first?.name === name;
  return {
    group: name,
    prefix: isOne ? (first.config.prefix ?? name) : name,
    servers: members.map(({ config, offer = nothing }) => ({
      server: config.name,
      prefix: config.prefix ?? config.name,
      ...offer,
    })),
  };
}

const nothing: Offer = { tools: [], resources: [], templates: [], prompts: [] };

async function allWithin(events: Promise<void>[], milliseconds: number): Promise<void> {
  const patience = new AbortController();
  const enough = delay(milliseconds, undefined, { signal: patience.signal }).catch(() => {});
  await Promise.race([Promise.all(events), enough]);
  patience.abort();
}
