import type { Client, PendingRequest } from './request.ts';

/**
 * The possible addressees of a message that names none:
 * - `calls`: exactly one client has calls in flight, and these are they;
 * - `client`: no call is in flight, and this is the only client that ever called;
 * - `everybody`: no client ever called, so it cannot be for one of them;
 * - `unclear`: it may be for one of several, or about a cancelled call.
 */
export type Audience =
  | { kind: 'calls'; calls: PendingRequest[] }
  | { kind: 'client'; client: Client }
  | { kind: 'everybody' }
  | { kind: 'unclear' };

/** A server may continue with a cancelled call for a while, and send messages about it. */
const LINGER_MS = 30_000;

/** Which clients a server works for, or has worked for. */
export class Callers {
  /** Weak: a client that is gone may hold a large replay buffer. */
  private first: WeakRef<Client> | undefined;
  private several = false;
  /** Cancelled calls that the server may still work on. Weak: the client of a single call holds its whole request. */
  private readonly lingering = new Map<number, { client: WeakRef<Client>; until: number }>();

  called(client: Client): void {
    if (this.first === undefined) this.first = new WeakRef(client);
    else if (this.first.deref() !== client) this.several = true;
  }

  cancelled(id: number, client: Client): void {
    this.expire();
    this.lingering.set(id, { client: new WeakRef(client), until: Date.now() + LINGER_MS });
  }

  /** The server responded to a cancelled call. Returns false if there is none with this id. */
  respondedLate(id: number): boolean {
    return this.lingering.delete(id);
  }

  audience(calls: Iterable<PendingRequest>): Audience {
    this.expire();
    const clients = new Set<object>();
    const served: PendingRequest[] = [];
    for (const call of calls) {
      if (call.client === undefined) continue;
      clients.add(call.client);
      served.push(call);
    }
    for (const cancelled of this.lingering.values()) {
      // A client that is gone differs from all others.
      clients.add(cancelled.client.deref() ?? cancelled);
      if (clients.size > 1) break;
    }
    if (clients.size > 1) return { kind: 'unclear' };
    if (clients.size === 1)
      return served.length === 0 ? { kind: 'unclear' } : { kind: 'calls', calls: served };
    if (this.several) return { kind: 'unclear' };
    if (this.first === undefined) return { kind: 'everybody' };
    const client = this.first.deref();
    return client === undefined ? { kind: 'unclear' } : { kind: 'client', client };
  }

  private expire(): void {
    const now = Date.now();
    // Ordered by cancellation.
    for (const [id, { until }] of this.lingering) {
      if (until > now) return;
      this.lingering.delete(id);
    }
  }
}
