import type { Message } from '../../protocol/message.ts';
import type { Client } from '../../upstreams/request.ts';
import { nameOf } from '../legacy/greeting.ts';

/** A modern client that gave a name, so that servers keep its state between requests. */
export interface KnownClient extends Client {
  readonly key: string;
  lastSeen: number;
  inFlight: number;
}

/** Clients that give a name in the header X-Switchboard-Session. They expire when idle. */
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
    // Keeps the map ordered by last use.
    this.byKey.delete(key);
    this.byKey.set(key, known);
    if (this.byKey.size > this.limit) this.makeRoom();
    return known;
  }

  /** False if the name is unknown. */
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

const MAX_NAMES = 1_000;
const LONGEST_TEXT = 1_000;

/** Caches parsed names, because clients send the same `clientInfo` with every request. */
export class ClientNames {
  private readonly byText = new Map<string, string>();

  of({ bytes, claims }: Message): string {
    const claim = claims?.clientInfo;
    if (claim === undefined) return '';
    const text = bytes.toString('utf8', claim.value.start, claim.value.end);
    let name = this.byText.get(text);
    if (name === undefined) {
      name = nameOf(JSON.parse(text));
      if (text.length > LONGEST_TEXT) return name;
      if (this.byText.size >= MAX_NAMES) this.byText.clear();
      this.byText.set(text, name);
    }
    return name;
  }
}
