import type { Client } from '../../upstreams/request.ts';

/** A client of the modern era that says as whom it comes again: what it has at servers stays there in between. */
export interface KnownClient extends Client {
  readonly key: string;
  lastSeen: number;
  /** How many of its requests are under way. */
  underWay: number;
}

/** The clients that name themselves by the header X-Switchboard-Session. Those that stay away are forgotten. */
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
    const known = this.byKey.get(key) ?? { era: 'modern', key, lastSeen: 0, underWay: 0 };
    known.lastSeen = Date.now();
    // In the order in which they were last seen.
    this.byKey.delete(key);
    this.byKey.set(key, known);
    if (this.byKey.size > this.limit) this.makeRoom();
    return known;
  }

  /** False where nobody of that name is known. */
  forgetNamed(key: string): boolean {
    const client = this.byKey.get(key);
    if (client !== undefined) this.drop(client);
    return client !== undefined;
  }

  sweep(now: number): void {
    for (const client of this.byKey.values()) {
      if (client.underWay === 0 && now - client.lastSeen > this.idleMs) this.drop(client);
    }
  }

  close(): void {
    for (const client of [...this.byKey.values()]) this.drop(client);
  }

  /** Whoever was not seen for longest, and has nothing under way. */
  private makeRoom(): void {
    for (const client of this.byKey.values()) {
      if (client.underWay > 0) continue;
      this.drop(client);
      return;
    }
  }

  private drop(client: KnownClient): void {
    this.byKey.delete(client.key);
    this.forget(client);
  }
}
