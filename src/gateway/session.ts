import type { Message } from '../protocol/envelope.ts';
import type { Chunks, RequestId } from '../protocol/jsonrpc.ts';
import type { ProtocolVersion } from '../protocol/versions.ts';
import type { Errand, Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import type { Scope } from './scope.ts';
import type { Tasks } from './tasks.ts';

/** Where everything goes that belongs to one request of a client. */
export interface Outlet {
  /** A message that comes before the answer: progress, a log line, a question of the server. */
  event(message: Chunks): void;
  /** The answer; nothing comes after it. */
  answer(message: Chunks): void;
  /** There will be no answer: the client has cancelled. */
  end(): void;
  /** The server lets go of its stream until later; the client may be asked to do the same. */
  pause(retryMs: number): void;
  /** Time has passed and no answer is there yet. */
  keepAlive(): void;
  /** Whether several answers leave as one message, so that each has to be exactly one. */
  readonly isBatch: boolean;
}

/** Where everything goes that belongs to the client but to none of its requests. */
export interface ClientStream {
  send(message: Chunks): void;
  keepAlive(): void;
  /** Whether the client is there and listening. */
  readonly isOpen: boolean;
  close(): void;
}

/** A request of the client that is not answered yet. */
export interface InFlight {
  readonly id: RequestId;
  /** Whose answer it awaits; undefined where it is ours to answer. */
  readonly group: Group | undefined;
  readonly outlet: Outlet;
  cancel(reason: string | undefined): void;
}

/** A question of a server to the client, not answered yet. */
export interface Ask {
  upstream: Upstream;
  /** The server's own id and progress token, as bytes. */
  serverId: Buffer;
  progressToken: Buffer | undefined;
  /** Where the client was asked: on the stream of one of its requests, or on its standing one. */
  place: Pick<Outlet, 'event'>;
}

export interface ClientFacts {
  version: ProtocolVersion;
  capabilities: Record<string, unknown>;
  /** What it calls itself: a name, and a version where it has one. */
  name: string;
}

/** A resource that the client follows. */
export interface Followed {
  /** As the client wrote it. */
  uri: string;
  /** Its owner: the group of that name in this project. */
  project: string;
  group: string;
  own: string;
  /** Where the client named one server of the group. */
  server: string | undefined;
  among: Errand['among'];
  /** The one that tells of its updates. */
  replica: Replica;
}

/** One connected client of the legacy era. */
export class Session {
  readonly id: string;
  readonly facts: ClientFacts;
  /** What it sees, unless a request says otherwise. */
  readonly scope: Scope;
  readonly stream: ClientStream;
  /** By the URI that the client gave, and the project where a request named one. */
  readonly followed = new Map<string, Followed>();
  private readonly inFlight = new Map<RequestId, InFlight>();
  /** How many requests await each group. */
  private readonly awaited = new Map<Group | undefined, number>();
  private asks: Map<number, Ask> | undefined;
  /** When the last question of each was answered, or taken back. */
  private settledAsks: WeakMap<Upstream, number> | undefined;
  private nextAsk = 1;
  private whenIdle: (() => void) | undefined;
  /** What servers do for it; most clients never ask for that. */
  tasks: Tasks | undefined;
  logLevel: string | undefined;
  lastSeen = Date.now();
  isClosed = false;

  constructor(id: string, facts: ClientFacts, scope: Scope, stream: ClientStream) {
    this.id = id;
    this.facts = facts;
    this.scope = scope;
    this.stream = stream;
  }

  /** How the client follows this resource already, under whatever URI. */
  follows(own: string, fits: (followed: Followed) => boolean): Followed | undefined {
    return [...this.followed.values()].find((followed) => followed.own === own && fits(followed));
  }

  /** False when a request with that id is under way already, or the session has ended. */
  begin(request: InFlight): boolean {
    if (this.isClosed || this.inFlight.has(request.id)) return false;
    this.inFlight.set(request.id, request);
    this.awaited.set(request.group, (this.awaited.get(request.group) ?? 0) + 1);
    return true;
  }

  /** False when it is over already. */
  finish(request: InFlight): boolean {
    if (this.inFlight.get(request.id) !== request) return false;
    this.inFlight.delete(request.id);
    this.lastSeen = Date.now();
    const left = this.awaited.get(request.group)! - 1;
    if (left === 0) this.awaited.delete(request.group);
    else this.awaited.set(request.group, left);
    // The answer is still to be sent.
    if (this.whenIdle !== undefined && !this.isBusy) setImmediate(this.whenIdle);
    return true;
  }

  cancel(id: RequestId, reason: string | undefined): void {
    this.inFlight.get(id)?.cancel(reason);
  }

  /** Whether answers of other groups than this one are awaited. */
  awaitsOthersThan(group: Group): boolean {
    return this.awaited.size > (this.awaited.has(group) ? 1 : 0);
  }

  /** Takes nothing new, and ends as soon as nothing is under way. */
  leave(end: () => void): void {
    this.whenIdle = end;
    if (!this.isBusy) end();
  }

  get isLeaving(): boolean {
    return this.whenIdle !== undefined;
  }

  get isBusy(): boolean {
    return this.inFlight.size > 0;
  }

  /** Remembers a question of a server, and gives the id under which the client is asked. */
  ask(ask: Ask): number {
    const id = this.nextAsk++;
    this.asks ??= new Map();
    this.asks.set(id, ask);
    return id;
  }

  /** The question that an answer of the client belongs to; it is over then. */
  takeAsk(id: RequestId | undefined): Ask | undefined {
    const ask = this.peekAsk(id);
    if (ask === undefined) return undefined;
    this.asks?.delete(id as number);
    this.settledAsks ??= new WeakMap();
    this.settledAsks.set(ask.upstream, performance.now());
    return ask;
  }

  peekAsk(id: RequestId | undefined): Ask | undefined {
    return typeof id === 'number' ? this.asks?.get(id) : undefined;
  }

  /** The questions of this upstream, by the ids of ours under which the client was asked. */
  asksOf(upstream: Upstream): [number, Ask][] {
    return [...(this.asks ?? [])].filter(([, ask]) => ask.upstream === upstream);
  }

  /** Until when that upstream waited for an answer of the client; 0 where it never did. */
  wasAwaitedUntil(upstream: Upstream, now: number): number {
    return this.asksOf(upstream).length > 0 ? now : (this.settledAsks?.get(upstream) ?? 0);
  }

  keepAlive(): void {
    this.stream.keepAlive();
    for (const { outlet } of this.inFlight.values()) outlet.keepAlive();
  }

  /** Ends everything of this client. Gives the questions that now nobody answers. */
  close(): Ask[] {
    this.isClosed = true;
    // The last first: a slot that is free again must not go to one that is about to be cancelled.
    for (const request of [...this.inFlight.values()].toReversed()) request.cancel('The client has gone.');
    const asks = [...(this.asks?.values() ?? [])];
    this.asks = undefined;
    this.stream.close();
    return asks;
  }
}

/** What an endpoint hands over: a message of a client, and where its answer goes. */
export interface Incoming {
  session: Session;
  message: Message;
  outlet: Outlet;
  /** The header in which a client names the labels that it prefers. */
  prefer: string | undefined;
  /** The projects that the address and the header of the request name; undefined where none is. */
  projects: readonly string[] | undefined;
}
