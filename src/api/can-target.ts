import type { Route } from '../catalog/catalog.ts';
import { itemOf } from '../gateway/items.ts';
import type { Scope, Scopes } from '../gateway/scope.ts';
import type { Permissions } from '../identity/permissions.ts';
import type { Item, ItemKind } from '../identity/rules.ts';
import type { LiveProject } from '../projects/live-project.ts';
import type { Projects } from '../projects/projects.ts';
import type { Group } from '../upstreams/group.ts';

export interface Question {
  action: 'see' | 'call';
  project: LiveProject | undefined;
  kind: ItemKind;
  /** As clients see it; with a server, as the server gives it. */
  name: string;
  server: string | undefined;
}

interface Target {
  project: { id: string; name: string };
  item: Item;
  /** Whether the principal finds it under this name. */
  isListed: boolean;
}

/** What the name means to those with these permissions, or else without rules: then it is hidden from them. */
export async function targetFor(
  projects: Projects,
  permissions: Permissions,
  question: Question,
): Promise<Target | undefined> {
  const own = scopeIn(projects.for(permissions), question);
  const full = scopeIn(projects, question);
  await full?.discovered();
  return targetIn(own, question, true) ?? targetIn(full, question, false);
}

function scopeIn(scopes: Scopes, { project }: Question): Scope | undefined {
  return project === undefined ? scopes.all : scopes.of(project.id);
}

function targetIn(scope: Scope | undefined, question: Question, isListed: boolean): Target | undefined {
  const route = scope && routeIn(scope, question);
  const group = route && scope.group(route.group);
  if (route === undefined || group === undefined) return undefined;
  const { kind, name, action } = question;
  const isTemplate = kind === 'resource' && name.includes('{');
  const item = itemOf(group, isTemplate ? 'templates' : `${kind}s`, route.own);
  // Who completes a template may find out any URI of it.
  const revealed = isTemplate && action === 'call' ? { revealsAll: true } : {};
  return { project: group.project, item: { ...item, ...revealed }, isListed };
}

function routeIn(scope: Scope, question: Question): Pick<Route, 'group' | 'own'> | undefined {
  const { kind, name, server } = question;
  const { catalog } = scope;
  if (server === undefined) {
    if (kind === 'tool') return catalog.tool(name);
    return kind === 'prompt' ? catalog.prompt(name) : catalog.resource(name);
  }
  const home = homeOf(scope, question);
  if (home === undefined) return undefined;
  const route = { group: home.qualifier, own: name };
  if (kind === 'resource') return route;
  const routes = catalog.names[`${kind}s`].values();
  return routes.some(({ group, own }) => group === route.group && own === name) ? route : undefined;
}

/** The group that has the server, or the name. */
function homeOf(
  scope: Scope,
  { project, server = '' }: Question,
): { qualifier: string; group: Group } | undefined {
  const named = scope.group(server);
  if (named !== undefined) return { qualifier: server, group: named };
  return project && scope.groupOf(project.id, server);
}
