import type { Route } from './route.ts';

type Found = { route: Route; params: Record<string, string> } | { allow: string };

interface Path {
  segments: readonly string[];
  routes: Map<string, Route>;
}

export class RouteTable {
  /** By number of segments. */
  private readonly paths = new Map<number, Path[]>();

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.add(route);
  }

  /** Returns `allow` if the path exists for other methods only. */
  find(method: string, path: string): Found | undefined {
    const parts = path.split('/');
    for (const { segments, routes } of this.paths.get(parts.length) ?? []) {
      const params = match(segments, parts);
      if (params === undefined) continue;
      const route = routes.get(method === 'HEAD' ? 'GET' : method);
      return route === undefined ? { allow: allowed(routes) } : { route, params };
    }
    return undefined;
  }

  private add(route: Route): void {
    const segments = route.path.split('/');
    const alike = this.paths.get(segments.length) ?? [];
    this.paths.set(segments.length, alike);
    let path = alike.find((candidate) => candidate.segments.join('/') === route.path);
    if (path === undefined) {
      path = { segments, routes: new Map() };
      alike.push(path);
    }
    path.routes.set(route.method, route);
  }
}

function match(segments: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const part = parts[index]!;
    if (!segment.startsWith(':')) {
      if (part !== segment) return undefined;
      continue;
    }
    const value = decoded(part);
    if (value === undefined) return undefined;
    params[segment.slice(1)] = value;
  }
  return params;
}

/** Undefined if it cannot be a name. */
function decoded(part: string): string | undefined {
  try {
    const value = decodeURIComponent(part);
    return value === '' || value.includes('\0') ? undefined : value;
  } catch {
    return undefined;
  }
}

function allowed(routes: Map<string, Route>): string {
  return [...routes.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}
