import type { Principal } from '../../identity/principal.ts';
import type { Message } from '../../protocol/message.ts';
import type { Client } from '../../upstreams/request.ts';
import { nameOf } from '../legacy/greeting.ts';

/** A modern client that gave a name, so that servers keep its state between requests. */
export interface KnownClient extends Client {
  readonly key: string;
  readonly principal: Principal;
  lastSeen: number;
  inFlight: number;
}

/** The same name means another client if another principal gives it. */
export function ownedName({ kind, id }: Principal, name: string): string {
  return kind === 'local' ? name : `${id}\n\n${name}`;
}

interface KnownClientLimits {
  maxSessions: number;
  maxSessionsPerPrincipal: number;
  sessionIdleMs: number;
}

/** Clients that give a name in the header X-Switchboard-Session. They expire when idle. */
export class KnownClients {
  private readonly limits: KnownClientLimits;
  private readonly forget: (client: KnownClient) => void;
  private readonly byKey = new Map<string, KnownClient>();

  constructor(limits: KnownClientLimits, forget: (client: KnownClient) => void) {
    this.limits = limits;
    this.forget = forget;
  }

  get size(): number {
    return this.byKey.size;
  }

  get(key: string, principal: Principal): KnownClient {
    const known = this.byKey.get(key) ?? this.create(key, principal);
    known.lastSeen = Date.now();
    // Keeps the map ordered by last use.
    this.byKey.delete(key);
    this.byKey.set(key, known);
    return known;
  }

  endOf(principal: Principal): void {
    for (const client of [...this.byKey.values()]) if (client.principal === principal) this.drop(client);
  }

  /** False if the name is unknown. */
  forgetNamed(key: string): boolean {
    const client = this.byKey.get(key);
    if (client !== undefined) this.drop(client);
    return client !== undefined;
  }

  sweep(now: number): void {
    for (const client of this.byKey.values()) {
      if (client.inFlight === 0 && now - client.lastSeen > this.limits.sessionIdleMs) this.drop(client);
    }
  }

  close(): void {
    for (const client of [...this.byKey.values()]) this.drop(client);
  }

  private create(key: string, principal: Principal): KnownClient {
    const { maxSessions, maxSessionsPerPrincipal } = this.limits;
    if (this.byKey.size >= maxSessions) this.makeRoom(() => true);
    const isOwn = (client: KnownClient) => client.principal === principal;
    if (
      principal.kind !== 'local' &&
      [...this.byKey.values()].filter(isOwn).length >= maxSessionsPerPrincipal
    )
      this.makeRoom(isOwn);
    return { era: 'modern', key, principal, lastSeen: 0, inFlight: 0 };
  }

  /** Drops the client that was idle for longest. */
  private makeRoom(mayGo: (client: KnownClient) => boolean): void {
    for (const client of this.byKey.values()) {
      if (client.inFlight > 0 || !mayGo(client)) continue;
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
