import { Catalog, type CatalogRules, type Route } from '../catalog/catalog.ts';
import type { Contribution, ListName, NamedKind } from '../catalog/contribution.ts';
import { SwitchboardError } from '../errors.ts';
import { unknownProject } from '../identity/access-control.ts';
import type { Permissions } from '../identity/permissions.ts';
import type { Item } from '../identity/rules.ts';
import type { Message } from '../protocol/message.ts';
import type { Group } from '../upstreams/group.ts';
import type { Freshness, OfferKind } from '../upstreams/lists.ts';
import type { Server } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { Project } from '../upstreams/settings.ts';
import type { Incoming } from './caller.ts';
import { Qualifiers } from './contributions.ts';
import { ScopeDiscovery } from './discovery.ts';
import { FormerNames } from './former-names.ts';
import { type DisabledServer, Unlisted } from './unlisted.ts';

export interface ScopeSettings extends CatalogRules {
  discoveryWaitMs: number;
  maxInstructionsBytes: number;
}

export interface ScopedProject extends Project {
  /** Servers of the default project keep their plain names in the scope of all projects. */
  readonly isDefault: boolean;
  readonly servers: Servers;
  readonly scope: Scope;
  isSwitchedOff(group: string, tool: string): boolean;
  disabledServers(): Iterable<DisabledServer>;
  /** Both undefined if everything is visible. */
  readonly isVisible: ((item: Item) => boolean) | undefined;
  readonly showsServer: ((server: Server) => boolean) | undefined;
}

interface NamedProject {
  readonly id: string;
  readonly name: string;
}

export interface Scopes {
  readonly all: Scope;
  of(project: string): Scope | undefined;
  /** The project of this name, if it exists but is not visible here. */
  hidden(name: string): NamedProject | undefined;
}

/** The scopes of principals who may see everything, and those of others. */
export interface AllScopes extends Scopes {
  for(permissions: Permissions): Scopes;
}

interface Snapshot {
  catalog: Catalog;
  /** By qualifier. */
  groups: ReadonlyMap<string, Group>;
}

/** Changes within this time lead to one notification. */
const COALESCE_MS = 20;
/** Thousands of names may clash. */
const MAX_WARNINGS = 100;

export class Scope {
  /** Undefined for the scope of all projects. */
  readonly project: ScopedProject | undefined;
  private readonly projects: () => Iterable<ScopedProject>;
  private settings: ScopeSettings;
  private readonly announce: (lists: ListName[], warnings: string[]) => void;
  private snapshot: Snapshot | undefined;
  private readonly changed = new Set<ListName>();
  private pending: NodeJS.Timeout | undefined;
  private readonly discovery: ScopeDiscovery;
  readonly formerNames = new FormerNames();
  /** The same scope with everything that this one hides; undefined if it hides nothing. */
  readonly full: Scope | undefined;

  constructor(
    projects: ScopedProject | (() => Iterable<ScopedProject>),
    settings: ScopeSettings,
    announce: (lists: ListName[], warnings: string[]) => void,
    full?: Scope,
  ) {
    this.full = full;
    this.project = typeof projects === 'function' ? undefined : projects;
    this.projects = typeof projects === 'function' ? projects : () => [projects];
    this.discovery = new ScopeDiscovery(this.projects);
    this.settings = settings;
    this.announce = announce;
  }

  get catalog(): Catalog {
    return this.current.catalog;
  }

  get maxInstructionsBytes(): number {
    return this.settings.maxInstructionsBytes;
  }

  show(): void {
    if (this.sole === undefined) this.formerNames.show(this.catalog);
    else this.sole.scope.show();
  }

  former(kind: NamedKind, name: string, listedAt: number | undefined): Route | undefined {
    if (this.sole !== undefined) return this.sole.scope.former(kind, name, listedAt);
    return this.formerNames.find(kind, name, listedAt, this.catalog);
  }

  group(qualifier: string): Group | undefined {
    return this.current.groups.get(qualifier);
  }

  groupOf(project: string, server: string): { qualifier: string; group: Group } | undefined {
    for (const [qualifier, group] of this.current.groups) {
      const isMember = group.project.id === project && group.members.some(({ name }) => name === server);
      if (isMember) return { qualifier, group };
    }
    return undefined;
  }

  servers(): Server[] {
    return [...this.projects()].flatMap(visibleServers);
  }

  qualifierOf({ name, project }: Server): string {
    const owner = this.project ?? [...this.projects()].find(({ id }) => id === project.id);
    return owner === undefined ? name : this.qualifiers.qualifier(owner, name);
  }

  shows(server: Server): boolean {
    for (const { id, showsServer } of this.projects())
      if (id === server.project.id) return showsServer?.(server) ?? true;
    return false;
  }

  /** Drops the snapshot, and schedules one notification for each list. */
  changes(kinds: readonly OfferKind[]): void {
    this.snapshot = undefined;
    for (const kind of kinds) this.changed.add(kind);
    this.pending ??= setTimeout(() => this.notify(), COALESCE_MS);
  }

  /** Sends pending notifications now, so that clients that connect later do not get them. */
  flush(): void {
    if (this.pending === undefined) return;
    clearTimeout(this.pending);
    this.notify();
  }

  configure(settings: ScopeSettings): void {
    this.settings = settings;
    this.snapshot = undefined;
  }

  /** Resolves when the offer of every server is known, or after `discoveryWaitMs`; undefined if it is. */
  discovered(): Promise<void> | undefined {
    return this.discovery.all(this.settings.discoveryWaitMs);
  }

  /** Like `discovered`, for lists, which each server delays only once. */
  listable(): Promise<void> | undefined {
    return this.discovery.forLists(this.settings.discoveryWaitMs);
  }

  /** The minimum of all servers. */
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

  explainUnknown(message: Message): SwitchboardError {
    return new Unlisted([...this.projects()], this.qualifiers, this.catalog).explain(message);
  }

  callMissed(error: SwitchboardError): void {
    const server = this.servers().find(({ name }) => name === error.data.server);
    const home = server && this.groupOf(server.project.id, server.name);
    home?.group.callMissed(server!.name, error);
  }

  /** The catalog without tool switches. */
  unswitched(): Catalog {
    return this.build(false).catalog;
  }

  close(): void {
    clearTimeout(this.pending);
  }

  private get qualifiers(): Qualifiers {
    return new Qualifiers(this.project !== undefined, this.settings.separator);
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

  /** If the default project is the only one, the scope of all projects equals its scope. */
  private get sole(): ScopedProject | undefined {
    if (this.project !== undefined) return undefined;
    const [first, second] = this.projects();
    return second === undefined && first?.isDefault === true ? first : undefined;
  }

  private build(withSwitches: boolean): Snapshot {
    const groups = new Map<string, Group>();
    const contributions: Contribution[] = [];
    const { qualifiers } = this;
    for (const project of this.projects()) {
      for (const group of project.servers.groups()) {
        const contribution = qualifiers.contribution(project, group, withSwitches);
        groups.set(contribution.qualifier, group);
        contributions.push(contribution);
      }
    }
    return { catalog: new Catalog(contributions, this.settings), groups };
  }

  private notify(): void {
    this.pending = undefined;
    const lists = [...this.changed];
    this.changed.clear();
    const { leftOut, warnings } = this.catalog;
    // Names that shadow each other are reported by the scope of their project.
    const all =
      this.project !== undefined ? [...leftOut, ...warnings] : this.sole === undefined ? leftOut : [];
    const more = all.length - MAX_WARNINGS;
    const shown = all.slice(0, MAX_WARNINGS);
    this.announce(lists, more > 0 ? [...shown, `and ${more} more of these`] : shown);
  }
}

function visibleServers({ servers, showsServer }: ScopedProject): Server[] {
  return showsServer === undefined ? servers.all() : servers.all().filter(showsServer);
}

/**
 * Named by the request's path, header or `_meta`, which must agree; otherwise the client's own scope. `denied` is called for a project
 * that is not visible, before the error that says that it does not exist.
 */
export function chooseScope(
  scopes: Scopes,
  own: Scope,
  projects: Incoming['projects'],
  { projectId }: Message,
  denied: (project: NamedProject) => void,
): Scope {
  if (projects === undefined && projectId === undefined) return own;
  const names = [...(projects ?? []), ...(projectId === undefined ? [] : [projectId.value])];
  const named = names.map((name) => scopeNamed(scopes, name, denied));
  const [chosen = own] = named;
  const isOne = named.every((scope) => scope === chosen) && (own === chosen || own.project === undefined);
  if (isOne) return chosen;
  const all = new Set(own.project === undefined ? names : [own.project.name, ...names]);
  const list = [...all].map((name) => JSON.stringify(name)).join(' and ');
  throw new SwitchboardError('invalid_request', `The request names several projects: ${list}. Name one.`);
}

function scopeNamed(scopes: Scopes, name: string, denied: (project: NamedProject) => void): Scope {
  const scope = scopes.of(name);
  if (scope !== undefined) return scope;
  const hidden = scopes.hidden(name);
  if (hidden !== undefined) denied(hidden);
  throw unknownProject(name);
}
