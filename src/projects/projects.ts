import { isDeepStrictEqual } from 'node:util';
import type { ListName } from '../catalog/contribution.ts';
import type { Configuration, Settings } from '../config.ts';
import { type AllScopes, Scope, type ScopeSettings, type Scopes } from '../gateway/scope.ts';
import { unknownProject } from '../identity/access-control.ts';
import type { Permissions } from '../identity/permissions.ts';
import type { ProjectState } from '../store/projects.ts';
import { type OfferKind, offerKinds } from '../upstreams/lists.ts';
import type { Changes, Servers } from '../upstreams/servers.ts';
import { LiveProject, type LiveProjectSettings } from './live-project.ts';
import { PermittedScopes } from './permitted-scopes.ts';

export interface ProjectsEvents {
  listsChanged(scope: Scope, ...change: Parameters<ConstructorParameters<typeof Scope>[2]>): void;
  /** The lists of a scope that hides something have changed. */
  permittedListsChanged(scope: Scope, lists: ListName[]): void;
  applied(project: LiveProject, changes: Changes): void;
  /** `scopes`: its scope, and those for principals who did not see all of it. */
  removed(project: LiveProject, scopes: readonly Scope[]): void;
  refreshed(): void;
}

export class Projects implements AllScopes {
  readonly all: Scope;
  private readonly settings: LiveProjectSettings;
  private readonly events: ProjectsEvents;
  private configuration: Configuration;
  private readonly byId = new Map<string, LiveProject>();
  private byName = new Map<string, LiveProject>();
  private readonly states = new Map<string, ProjectState>();
  private readonly permitted = new Map<Permissions, PermittedScopes>();
  /** The servers of removed projects, while their last calls are in flight. */
  private readonly leaving = new Set<Servers>();
  private isStopped = false;

  constructor(configuration: Configuration, settings: LiveProjectSettings, events: ProjectsEvents) {
    this.configuration = configuration;
    this.settings = settings;
    this.events = events;
    this.all = new Scope(
      () => this.byId.values(),
      scopeSettings(configuration.settings),
      (...change) => events.listsChanged(this.all, ...change),
    );
  }

  /** Principals with the same permissions share their scopes. */
  for(permissions: Permissions): Scopes {
    if (permissions.seesAll) return this;
    let scopes = this.permitted.get(permissions);
    if (scopes === undefined) {
      scopes = new PermittedScopes(this, permissions, this.events.permittedListsChanged);
      this.permitted.set(permissions, scopes);
    }
    return scopes;
  }

  /** Drops the scopes of permissions that nobody has any more. */
  keepScopesOf(permissions: ReadonlySet<Permissions>): void {
    for (const [unused, scopes] of this.permitted) {
      if (permissions.has(unused)) continue;
      this.permitted.delete(unused);
      scopes.close();
    }
  }

  get scopeSettings(): ScopeSettings {
    return scopeSettings(this.configuration.settings);
  }

  hidden(): undefined {}

  of(project: string): Scope | undefined {
    return this.lookUp(project)?.scope;
  }

  lookUp(project: string): LiveProject | undefined {
    return this.byName.get(project) ?? this.byId.get(project);
  }

  /** By id or name. Throws if there is none. */
  get(project: string): LiveProject {
    const found = this.lookUp(project);
    if (found !== undefined) return found;
    throw unknownProject(project);
  }

  list(): LiveProject[] {
    return [...this.byId.values()];
  }

  /** Returns whether any server changed. */
  configure(configuration: Configuration): boolean {
    const settings = scopeSettings(configuration.settings);
    const isSame = isDeepStrictEqual(settings, scopeSettings(this.configuration.settings));
    this.configuration = configuration;
    this.all.configure(settings);
    const changed = this.list().filter((project) => {
      project.configure(settings);
      // Names may have changed.
      if (!isSame) this.changed(project, offerKinds);
      return this.apply(this.states.get(project.id)!);
    });
    for (const permitted of this.permitted.values()) permitted.configure();
    return changed.length > 0;
  }

  /** Returns whether any server changed. */
  apply(state: ProjectState): boolean {
    // Servers that start now would never be stopped.
    if (this.isStopped) return false;
    const { id } = state.project;
    const project = this.byId.get(id) ?? this.add(state);
    this.states.set(id, state);
    const { changes, isVisible } = project.apply(
      state,
      // The servers of the configuration file belong to the default project.
      project.isDefault ? this.configuration.servers : [],
      this.configuration.defaults,
    );
    this.nameAll();
    if (isVisible) this.changed(project, offerKinds);
    const isChanged = Object.values(changes).some((servers) => servers.length > 0);
    if (isChanged) this.events.applied(project, changes);
    this.events.refreshed();
    return isChanged;
  }

  remove(id: string): void {
    const project = this.byId.get(id);
    if (project === undefined) return;
    this.byId.delete(id);
    this.nameAll();
    this.states.delete(id);
    project.scope.close();
    this.all.changes(offerKinds);
    const scopes = [...this.permitted.values()].flatMap((permitted) => permitted.remove(project) ?? []);
    this.events.removed(project, [project.scope, ...scopes]);
    const { servers } = project;
    servers.apply([]);
    this.events.refreshed();
    this.leaving.add(servers);
    void servers.retired().finally(() => this.leaving.delete(servers));
  }

  changed(project: LiveProject, kinds: readonly OfferKind[]): void {
    project.scope.changes(kinds);
    this.all.changes(kinds);
    for (const permitted of this.permitted.values()) permitted.changes(project, kinds);
  }

  /** Call before clients connect. */
  settle(): void {
    this.all.flush();
    for (const { scope } of this.list()) scope.flush();
  }

  /** Marks the current lists as seen by clients. */
  show(): void {
    this.all.show();
    for (const { scope } of this.list()) scope.show();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    this.all.close();
    for (const permitted of this.permitted.values()) permitted.close();
    for (const { scope } of this.list()) scope.close();
    const all = [...this.list().map(({ servers }) => servers), ...this.leaving];
    await Promise.all(all.map((servers) => servers.stop()));
  }

  private nameAll(): void {
    this.byName = new Map(this.list().map((project) => [project.name, project]));
  }

  private add(state: ProjectState): LiveProject {
    const project: LiveProject = new LiveProject(
      state,
      this.settings,
      scopeSettings(this.configuration.settings),
      (...change) => this.events.listsChanged(project.scope, ...change),
    );
    this.byId.set(project.id, project);
    return project;
  }
}

function scopeSettings({
  naming,
  names,
  separator,
  pageSize,
  maxCatalogItems,
  discoveryWaitMs,
  maxInstructionsBytes,
}: Settings): ScopeSettings {
  const rules = { mode: naming, names, separator, pageSize, maxItems: maxCatalogItems };
  return { ...rules, discoveryWaitMs, maxInstructionsBytes };
}
