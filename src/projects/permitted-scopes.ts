import type { ListName } from '../catalog/contribution.ts';
import { Scope, type ScopedProject, type ScopeSettings, type Scopes } from '../gateway/scope.ts';
import type { DisabledServer } from '../gateway/unlisted.ts';
import type { Permissions } from '../identity/permissions.ts';
import type { OfferKind } from '../upstreams/lists.ts';
import type { Server } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { LiveProject } from './live-project.ts';

interface Source {
  readonly all: Scope;
  readonly scopeSettings: ScopeSettings;
  list(): readonly LiveProject[];
  lookUp(project: string): LiveProject | undefined;
}

type Announce = (scope: Scope, lists: ListName[]) => void;

/** The projects as principals with the same permissions see them. A scope of its own exists only where something is hidden. */
export class PermittedScopes implements Scopes {
  readonly all: Scope;
  private readonly source: Source;
  private readonly permissions: Permissions;
  private readonly announce: Announce;
  private readonly projects = new Map<LiveProject, PermittedProject>();

  constructor(source: Source, permissions: Permissions, announce: Announce) {
    this.source = source;
    this.permissions = permissions;
    this.announce = announce;
    this.all = permissions.seesAll
      ? source.all
      : new Scope(
          () => this.visible(),
          source.scopeSettings,
          (lists) => announce(this.all, lists),
          source.all,
        );
  }

  of(name: string): Scope | undefined {
    const project = this.source.lookUp(name);
    return project && this.see(project)?.scope;
  }

  hidden(name: string): LiveProject | undefined {
    const project = this.source.lookUp(name);
    return project !== undefined && this.see(project) === undefined ? project : undefined;
  }

  changes(project: LiveProject, kinds: readonly OfferKind[]): void {
    this.projects.get(project)?.scope.changes(kinds);
    if (this.all !== this.source.all) this.all.changes(kinds);
  }

  configure(): void {
    if (this.all !== this.source.all) this.all.configure(this.source.scopeSettings);
    for (const [project, { scope }] of this.projects) scope.configure(project.settingsOfScope);
  }

  /** Returns the scope of a removed project, if there is one. */
  remove(project: LiveProject): Scope | undefined {
    const scope = this.projects.get(project)?.scope;
    this.projects.delete(project);
    scope?.close();
    if (this.all !== this.source.all) this.all.changes(['tools', 'resources', 'templates', 'prompts']);
    return scope;
  }

  close(): void {
    if (this.all !== this.source.all) this.all.close();
    for (const { scope } of this.projects.values()) scope.close();
  }

  private *visible(): Generator<ScopedProject> {
    for (const project of this.source.list()) {
      const seen = this.see(project);
      if (seen !== undefined) yield seen;
    }
  }

  private see(project: LiveProject): ScopedProject | undefined {
    const { permissions } = this;
    if (!permissions.may('see', project.id)) return undefined;
    if (permissions.rulesIn(project.id) === undefined) return project;
    let seen = this.projects.get(project);
    if (seen === undefined) {
      seen = new PermittedProject(project, permissions, this.announce);
      this.projects.set(project, seen);
    }
    return seen;
  }
}

/** A project without what rules hide. */
class PermittedProject implements ScopedProject {
  readonly id: string;
  readonly isDefault: boolean;
  readonly servers: Servers;
  readonly scope: Scope;
  readonly isVisible: ScopedProject['isVisible'];
  readonly showsServer: (server: Server) => boolean;
  private readonly project: LiveProject;

  constructor(project: LiveProject, permissions: Permissions, announce: Announce) {
    this.project = project;
    this.id = project.id;
    this.isDefault = project.isDefault;
    this.servers = project.servers;
    this.isVisible = permissions.visibleIn(project.id);
    this.showsServer = ({ name, group }) =>
      permissions.rulesIn(project.id)?.showsServer([group, name]) ?? true;
    this.scope = new Scope(
      this,
      project.settingsOfScope,
      (lists) => announce(this.scope, lists),
      project.scope,
    );
  }

  get name(): string {
    return this.project.name;
  }

  isSwitchedOff(group: string, tool: string): boolean {
    return this.project.isSwitchedOff(group, tool);
  }

  disabledServers(): Iterable<DisabledServer> {
    return this.project.disabledServers();
  }
}
