import type { ListName } from '../catalog/contribution.ts';
import type { SwitchboardError } from '../errors.ts';
import { hiddenItems, isHidden } from '../gateway/items.ts';
import type { Scope } from '../gateway/scope.ts';
import type { AccessControl } from '../identity/access-control.ts';
import type { Principal, Sender } from '../identity/principal.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { Projects } from '../projects/projects.ts';
import { serverViewsOf } from './server-view.ts';
import type { ServerEvent, ServerView } from './views.ts';

interface NamedServer {
  name: string;
  group?: string | null | undefined;
}

/** Throws with the denial that is recorded when somebody asks for a server that rules hide, or for one of a hidden project. */
export function denyServer(
  control: AccessControl,
  sender: Sender,
  project: LiveProject,
  { name, group }: NamedServer,
  unknown: () => SwitchboardError,
): void {
  const item = { kind: 'tool' as const, servers: [group ?? name, name], name: '*', hints: [] };
  control.authorizeItem(sender, project, item, unknown);
}

/** What a principal sees of a project through the API. From those who do not operate it, rules hide the same as in MCP. */
export class Sight {
  private readonly projects: Projects;
  private readonly project: LiveProject;
  private readonly principal: Principal;

  constructor(projects: Projects, project: LiveProject, principal: Principal) {
    this.projects = projects;
    this.project = project;
    this.principal = principal;
  }

  /** Whether it sees everything, with configurations. */
  get isFull(): boolean {
    return this.principal.permissions.may('operate', this.project.id);
  }

  /** The lists of its clients. */
  get scope(): Scope {
    const { project, projects, principal } = this;
    if (this.isFull) return project.scope;
    return projects.for(principal.permissions).of(project.id) ?? project.scope;
  }

  shows({ name, group }: NamedServer): boolean {
    if (this.isFull) return true;
    const rules = this.principal.permissions.rulesIn(this.project.id);
    return rules?.showsServer([group ?? name, name]) ?? true;
  }

  serverViews(): ServerView[] {
    return serverViewsOf(this.project).flatMap((view) => this.viewOf(view) ?? []);
  }

  /** Undefined if it does not see the server. */
  viewOf(view: ServerView): ServerView | undefined {
    if (this.isFull) return view;
    if (!this.shows(view)) return undefined;
    return {
      ...view,
      ...{ config: null, tools: null, error: null, warning: null },
      replicas: view.replicas.map((replica) => ({ ...replica, error: null })),
      ...this.visibleOffer(view.name),
    };
  }

  eventOf(event: ServerEvent): ServerEvent | undefined {
    const server = this.viewOf(event.server);
    return server && { ...event, server };
  }

  /** Without what rules hide. */
  private visibleOffer(name: string): Partial<ServerView> {
    const isVisible = this.principal.permissions.visibleIn(this.project.id);
    if (isVisible === undefined) return {};
    const server = this.project.servers.get(name);
    const group = server && this.project.servers.group(server.group);
    const hidden = group && hiddenItems(group, isVisible);
    // Null for a server that is being stopped.
    const count = (list: Exclude<ListName, 'templates'>) =>
      (hidden && server?.offer?.[list].filter((item) => !isHidden(hidden, list, item)).length) ?? null;
    return {
      tool_count: count('tools'),
      resource_count: count('resources'),
      prompt_count: count('prompts'),
    };
  }
}
