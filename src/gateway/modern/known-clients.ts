import type { Client } from '../../upstreams/request.ts';

/** A modern client that gave a name: its state at servers stays between its requests. */
export interface KnownClient extends Client {
  readonly key: string;
  lastSeen: number;
  /** How many of its requests are in flight. */
  inFlight: number;
}

/** The clients that give a name in the header X-Switchboard-Session. They expire when idle. */
export class KnownClients {
  private readonly limit: number;
  private readonly idleMs: number;
  private readonly forget: (client: KnownClient) => void;
  private readonly byKey = new Map<string, KnownClient>();

  constructor(limit: number, idleMs: number, forget: (client: KnownClient) => void) {
    this.limit = limit;
    this.idleMs = idleMs;
    this.forget = forget;
  }

  get size(): number {
    return this.byKey.size;
  }

  get(key: string): KnownClient {
    const known = this.byKey.get(key) ?? { era: 'modern', key, lastSeen: 0, inFlight: 0 };
    known.lastSeen = Date.now();
    // Keeps the map in the order in which clients were last seen.
    this.byKey.delete(key);
    this.byKey.set(key, known);
    if (this.byKey.size > this.limit) this.makeRoom();
    return known;
  }

  /** False if there is none of that name. */
  forgetNamed(key: string): boolean {
    const client = this.byKey.get(key);
    if (client !== undefined) this.drop(client);
    return client !== undefined;
  }

  sweep(now: number): void {
    for (const client of this.byKey.values()) {
      if (client.inFlight === 0 && now - client.lastSeen > this.idleMs) this.drop(client);
    }
  }

  close(): void {
    for (const client of [...this.byKey.values()]) this.drop(client);
  }

  /** Evicts the client that was idle for longest. */
  private makeRoom(): void {
    for (const client of this.byKey.values()) {
      if (client.inFlight > 0) continue;
      this.drop(client);
      return;
    }
  }

  private drop(client: KnownClient): void {
    this.byKey.delete(client.key);
    this.forget(client);
  }
}
