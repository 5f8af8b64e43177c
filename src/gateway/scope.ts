import { Catalog, type CatalogRules, type Route } from '../catalog/catalog.ts';
import type { Contribution, ListName, NamedKind } from '../catalog/contribution.ts';
import type { Group } from '../upstreams/group.ts';
import type { Freshness, OfferKind } from '../upstreams/lists.ts';
import type { Server } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { Project } from '../upstreams/settings.ts';
import { Places } from './contributions.ts';
import { FormerNames } from './former-names.ts';
import { type DisabledServer, Unlisted } from './unlisted.ts';
import { allWithin } from './within.ts';

export interface ScopeSettings extends CatalogRules {
  discoveryWaitMs: number;
  maxInstructionsBytes: number;
}

/** A project as clients see it. */
export interface ScopedProject extends Project {
  /** Its servers are shown under their own names even among those of other projects. */
  readonly isDefault: boolean;
  readonly servers: Servers;
  readonly scope: Scope;
  /** Whether this tool of a group was switched off. */
  isSwitchedOff(group: string, tool: string): boolean;
  /** Those of its servers that are not used. */
  disabledServers(): Iterable<DisabledServer>;
}

/** The scopes that there are: clients choose one. */
export interface Scopes {
  /** All servers of all projects. */
  readonly all: Scope;
  /** The scope of the project with this id or name. */
  of(project: string): Scope | undefined;
}

interface Snapshot {
  catalog: Catalog;
  /** By their places in the catalog. */
  groups: ReadonlyMap<string, Group>;
}

/** Changes that come this close together are one change for clients. */
const COALESCE_MS = 20;
/** Thousands of names may hide others. */
const MAX_WARNINGS = 100;

/** The servers that a client sees, and the catalog of what they offer: always the newest snapshot. */
export class Scope {
  /** The one project whose servers these are; undefined where it is all of them. */
  readonly project: ScopedProject | undefined;
  private readonly projects: () => Iterable<ScopedProject>;
  private settings: ScopeSettings;
  private readonly announce: (lists: ListName[], warnings: string[]) => void;
  private snapshot: Snapshot | undefined;
  private readonly changed = new Set<ListName>();
  private pending: NodeJS.Timeout | undefined;
  /** Until when lists wait for a server that was never seen. */
  private readonly deadlines = new WeakMap<Server, number>();
  readonly formerNames = new FormerNames();

  constructor(
    projects: ScopedProject | (() => Iterable<ScopedProject>),
    settings: ScopeSettings,
    announce: (lists: ListName[], warnings: string[]) => void,
  ) {
    this.project = typeof projects === 'function' ? undefined : projects;
    this.projects = typeof projects === 'function' ? projects : () => [projects];
    this.settings = settings;
    this.announce = announce;
  }

  get catalog(): Catalog {
    return this.current.catalog;
  }

  /** How much of what servers tell models of themselves clients are told. */
  get maxInstructionsBytes(): number {
    return this.settings.maxInstructionsBytes;
  }

  /** A client is shown what is listed now. */
  show(): void {
    if (this.sole === undefined) this.formerNames.show(this.catalog);
    else this.sole.scope.show();
  }

  /** Where a name led that is listed no longer, for a client that saw its first list then. */
  former(kind: NamedKind, name: string, listedAt: number | undefined): Route | undefined {
    if (this.sole !== undefined) return this.sole.scope.former(kind, name, listedAt);
    return this.formerNames.find(kind, name, listedAt, this.catalog);
  }

  /** The group that has this place in the catalog. */
  group(place: string): Group | undefined {
    return this.current.groups.get(place);
  }

  /** The group of a server of this project, and what stands for it here. */
  groupOf(project: string, server: string): { place: string; group: Group } | undefined {
    for (const [place, group] of this.current.groups) {
      const isIt = group.project.id === project && group.members.some(({ name }) => name === server);
      if (isIt) return { place, group };
    }
    return undefined;
  }

  servers(): Server[] {
    return [...this.projects()].flatMap(({ servers }) => servers.all());
  }

  /** What stands for a server here. */
  placeOf({ name, project }: Server): string {
    const owner = this.project ?? [...this.projects()].find(({ id }) => id === project.id);
    return owner === undefined ? name : this.places.placeIn(owner, name);
  }

  shows(project: Project): boolean {
    return this.project === undefined || this.project.id === project.id;
  }

  /** Something changed: the next look at the catalog sees it, and clients are told soon, once for each list. */
  changes(kinds: readonly OfferKind[]): void {
    this.snapshot = undefined;
    for (const kind of kinds) this.changed.add(kind);
    this.pending ??= setTimeout(() => this.tell(), COALESCE_MS);
  }

  /** Tells now what would be told soon: nobody who comes later hears of what was there before. */
  settle(): void {
    if (this.pending === undefined) return;
    clearTimeout(this.pending);
    this.tell();
  }

  configure(settings: ScopeSettings): void {
    this.settings = settings;
    this.snapshot = undefined;
  }

  /** Settles when every server has been seen once, or after the set time; undefined where all have been. */
  discovered(): Promise<void> | undefined {
    return this.waitFor(() => Date.now() + this.settings.discoveryWaitMs);
  }

  /**
   * The same for lists, which many clients ask for again and again: each server delays them only once, and not at all
   * where it is known what it offered before.
   */
  listable(): Promise<void> | undefined {
    return this.waitFor((server) => (server.isRemembered ? 0 : this.deadlineOf(server)));
  }

  /** How long a list holds, and whether it is the same for everybody, as far as all of its servers say so. */
  freshness(kind: OfferKind): Freshness {
    let [ttlMs, isPublic] = [Number.POSITIVE_INFINITY, true];
    for (const project of this.projects()) {
      for (const server of project.servers.each()) {
        const own = server.freshness(kind);
        ttlMs = Math.min(ttlMs, own.ttlMs);
        isPublic &&= own.isPublic;
      }
    }
    return { ttlMs: Number.isFinite(ttlMs) ? ttlMs : 0, isPublic };
  }

  /** What explains why something is not listed. */
  get unlisted(): Unlisted {
    return new Unlisted([...this.projects()], this.places, this.catalog);
  }

  /** The catalog as it would be if nothing was switched off. */
  unswitched(): Catalog {
    return this.build(false).catalog;
  }

  close(): void {
    clearTimeout(this.pending);
  }

  private get places(): Places {
    return new Places(this.project !== undefined, this.settings.separator);
  }

  private get current(): Snapshot {
    this.snapshot ??= this.sole?.scope.current ?? this.buildNext();
    return this.snapshot;
  }

  private buildNext(): Snapshot {
    const next = this.build(true);
    this.formerNames.replace(next.catalog);
    return next;
  }

  /** Where there is only one project, and its names are shown as they are, all of them is the same as that one. */
  private get sole(): ScopedProject | undefined {
    if (this.project !== undefined) return undefined;
    const [first, second] = this.projects();
    return second === undefined && first?.isDefault === true ? first : undefined;
  }

  private build(withSwitches: boolean): Snapshot {
    const groups = new Map<string, Group>();
    const contributions: Contribution[] = [];
    const { places } = this;
    for (const project of this.projects()) {
      for (const group of project.servers.groups()) {
        const contribution = places.contribution(project, group, withSwitches);
        groups.set(contribution.place, group);
        contributions.push(contribution);
      }
    }
    return { catalog: new Catalog(contributions, this.settings), groups };
  }

  /** Starts servers that were never seen. Others are not waited for, connected or not. */
  private waitFor(deadlineOf: (server: Server) => number): Promise<void> | undefined {
    const now = Date.now();
    const awaited: Promise<void>[] = [];
    let last = now;
    for (const project of this.projects()) {
      for (const server of project.servers.each()) {
        server.freshen();
        if (!server.isUnseen) continue;
        const seen = server.seen();
        const deadline = deadlineOf(server);
        if (deadline <= now) continue;
        awaited.push(seen);
        last = Math.max(last, deadline);
      }
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
    // Names that hide each other are told of where they are: in their project.
    const { leftOut, warnings } = this.catalog;
    const told =
      this.project !== undefined ? [...leftOut, ...warnings] : this.sole === undefined ? leftOut : [];
    const more = told.length - MAX_WARNINGS;
    this.announce(lists, [
      ...told.slice(0, MAX_WARNINGS),
      ...(more > 0 ? [`and ${more} more of these`] : []),
    ]);
  }
}
