import { setTimeout as delay } from 'node:timers/promises';
import type { Server } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';

/** Waits for the offers of servers that never connected. */
export class ScopeDiscovery {
  private readonly projects: () => Iterable<{ readonly servers: Servers }>;
  private readonly deadlines = new WeakMap<Server, number>();

  constructor(projects: () => Iterable<{ readonly servers: Servers }>) {
    this.projects = projects;
  }

  /** Resolves when every server has connected once, or after the timeout; undefined if all have. */
  all(timeoutMs: number): Promise<void> | undefined {
    const deadline = Date.now() + timeoutMs;
    return this.wait(() => deadline);
  }

  /** Like `all`, for lists, which clients request often: each server delays them once, and only if its last offer is unknown. */
  forLists(timeoutMs: number): Promise<void> | undefined {
    return this.wait((server) => (server.hasSnapshot ? 0 : this.listDeadline(server, timeoutMs)));
  }

  /** Starts servers that never connected, and waits for them only. */
  private wait(deadlineOf: (server: Server) => number): Promise<void> | undefined {
    const now = Date.now();
    const awaited: Promise<void>[] = [];
    let last = now;
    for (const { servers } of this.projects()) {
      for (const server of servers.each()) {
        server.freshen();
        if (!server.isUndiscovered) continue;
        const seen = server.discovered();
        const deadline = deadlineOf(server);
        if (deadline <= now) continue;
        awaited.push(seen);
        last = Math.max(last, deadline);
      }
    }
    return awaited.length === 0 ? undefined : allWithin(awaited, last - now);
  }

  private listDeadline(server: Server, timeoutMs: number): number {
    const known = this.deadlines.get(server);
    if (known !== undefined) return known;
    const deadline = Date.now() + timeoutMs;
    this.deadlines.set(server, deadline);
    return deadline;
  }
}

export async function allWithin(promises: readonly Promise<unknown>[], timeoutMs: number): Promise<void> {
  const timer = new AbortController();
  const timeout = delay(timeoutMs, undefined, { signal: timer.signal }).catch(() => {});
  await Promise.race([Promise.all(promises), timeout]);
  timer.abort();
}
