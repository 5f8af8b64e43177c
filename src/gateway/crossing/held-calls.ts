import { randomUUID } from 'node:crypto';
import type { Upstream } from '../../upstreams/upstream.ts';
import type { Incoming } from '../caller.ts';
import { wrong } from '../modern/request-state.ts';

/** A call of which the server waits until its client comes back with what it was asked for. */
export interface Holdable {
  /** The client is back. */
  resume(incoming: Incoming): void;
  /** It did not come back in time, or we stop. */
  abandon(): void;
  /** The server takes a question back. */
  withdraw(upstream: Upstream, serverId: Buffer): void;
}

interface Held {
  call: Holdable;
  deadline: NodeJS.Timeout;
}

/** The calls that wait for their clients: so many at the most, and each only for so long. */
export class HeldCalls {
  private readonly limit: number;
  private readonly waitMs: number;
  private readonly byId = new Map<string, Held>();
  /** Those that have asked their clients, held or about to be. */
  private readonly asking = new Set<Holdable>();

  isClosed = false;

  constructor(limit: number, waitMs: number) {
    this.limit = limit;
    this.waitMs = waitMs;
  }

  get isFull(): boolean {
    return this.byId.size >= this.limit;
  }

  /** Keeps a call until its client comes back. Gives the name under which it is kept. */
  hold(call: Holdable): string {
    const id = randomUUID();
    const deadline = setTimeout(() => {
      this.byId.delete(id);
      call.abandon();
    }, this.waitMs).unref();
    this.byId.set(id, { call, deadline });
    return id;
  }

  /** The call of that name, which is held no more. */
  take(id: string): Holdable {
    const held = this.byId.get(id);
    if (held === undefined) throw wrong('was used already, or its call is over');
    clearTimeout(held.deadline);
    this.byId.delete(id);
    return held.call;
  }

  asks(call: Holdable): void {
    this.asking.add(call);
  }

  over(call: Holdable): void {
    this.asking.delete(call);
  }

  withdraw(upstream: Upstream, serverId: Buffer): void {
    for (const call of this.asking) call.withdraw(upstream, serverId);
  }

  /** Those that wait are given up, and no more are taken. */
  close(): void {
    this.isClosed = true;
    for (const { call, deadline } of this.byId.values()) {
      clearTimeout(deadline);
      call.abandon();
    }
    this.byId.clear();
  }
}
