import type { Client, PendingRequest } from './request.ts';

/**
 * Whom something can be meant for that a server says without saying to whom:
 * - `calls`: exactly one client is being served, through these calls;
 * - `client`: nobody is being served, and this is the only client that ever was;
 * - `everybody`: no client was ever served, so it cannot be about one;
 * - `unclear`: it may be about one of several, or about a call that was cancelled.
 */
export type Audience =
  | { kind: 'calls'; calls: PendingRequest[] }
  | { kind: 'client'; client: Client }
  | { kind: 'everybody' }
  | { kind: 'unclear' };

/** A server may go on with a cancelled call for a while, and speak of it. */
const LINGER_MS = 30_000;

/** Remembers for whom a server works or has worked. */
export class Callers {
  /** Not kept alive by this: a client that is gone may have left much to be replayed. */
  private first: WeakRef<Client> | undefined;
  private several = false;
  /** Cancelled calls that the server may still be busy with. A client of one call has all of its request in it. */
  private readonly lingering = new Map<number, { client: WeakRef<Client>; until: number }>();

  called(client: Client): void {
    if (this.first === undefined) this.first = new WeakRef(client);
    else if (this.first.deref() !== client) this.several = true;
  }

  cancelled(id: number, client: Client): void {
    this.forgetOld();
    this.lingering.set(id, { client: new WeakRef(client), until: Date.now() + LINGER_MS });
  }

  /** The server has answered a call although it was cancelled: it is done with it. */
  answeredLate(id: number): boolean {
    return this.lingering.delete(id);
  }

  audience(calls: Iterable<PendingRequest>): Audience {
    this.forgetOld();
    const clients = new Set<object>();
    const served: PendingRequest[] = [];
    for (const call of calls) {
      if (call.client === undefined) continue;
      clients.add(call.client);
      served.push(call);
    }
    for (const cancelled of this.lingering.values()) {
      // One that is gone is none of the others.
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

  private forgetOld(): void {
    const now = Date.now();
    // They are in the order in which they were cancelled.
    for (const [id, { until }] of this.lingering) {
      if (until > now) return;
      this.lingering.delete(id);
    }
  }
}
