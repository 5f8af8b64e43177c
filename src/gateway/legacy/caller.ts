import { SwitchboardError } from '../../errors.ts';
import type { Message } from '../../protocol/envelope.ts';
import type { Chunks, RequestId } from '../../protocol/jsonrpc.ts';
import { describedMembers, subscribedAs } from '../../protocol/self-description.ts';
import { type Edit, splice } from '../../protocol/splice.ts';
import type { ProtocolVersion } from '../../protocol/versions.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import type { Caller, ClientFacts, InFlight, Responder } from '../caller.ts';
import type { Followed, Follower } from '../follower.ts';
import { isWanted } from '../logging.ts';
import { moment } from '../moment.ts';
import type { Scope } from '../scope.ts';
import type { Tasks } from './tasks.ts';

/** Where everything goes that belongs to the client but to none of its requests. */
export interface ClientStream {
  send(message: Chunks): void;
  keepAlive(): void;
  /** Whether the client is there and listening. */
  readonly isOpen: boolean;
  close(): void;
}

/** A question of a server to the client, not answered yet. */
export interface Ask {
  /** Where the client was asked: on the stream of one of its requests, or on its standing one. */
  readonly place: Pick<Responder, 'event'>;
  /** The server that waits for the answer, its own id of the question, and its progress token; none of the modern era does. */
  readonly source: { upstream: Upstream; serverId: Buffer; progressToken: Buffer | undefined } | undefined;
  /** The request that it was asked for, where that is known and has a place of its own. */
  readonly call: InFlight | undefined;
  /** The client's answer. */
  answered(message: Message): void;
  /** The client went away without one. */
  declined(): void;
}

/** More than all servers together work on at a time. */
const MAX_IN_FLIGHT = 10_000;

/** No client answers so many at a time: whoever asks more of one has gone wrong. */
const MAX_ASKS_OF_SERVER = 100;
const MAX_ASKS = 200;

export function tooManyQuestions(): SwitchboardError {
  const why =
    'Too many questions wait for an answer of this client already: ask again when some are answered.';
  return new SwitchboardError('client_unavailable', why);
}

/** What a client of the legacy era says of itself when it opens a session. */
export interface SessionFacts extends ClientFacts {
  version: ProtocolVersion;
  clientInfo: object;
}

/** One connected client of the legacy era. */
export class Session implements Caller, Follower {
  readonly era = 'legacy';
  readonly id: string;
  readonly facts: SessionFacts;
  /** What it sees, unless a request says otherwise. */
  readonly scope: Scope;
  readonly stream: ClientStream;
  readonly followed = new Map<string, Followed>();
  private readonly inFlight = new Map<RequestId, InFlight>();
  /** How many requests await each group. */
  private readonly awaited = new Map<Group | undefined, number>();
  private asks: Map<number, Ask> | undefined;
  /** When the last question of each was answered, or taken back. */
  private settledAsks: WeakMap<Upstream, number> | undefined;
  private nextAsk = 1;
  private whenIdle: (() => void) | undefined;
  private description: { logLevel: string | undefined; members: Buffer } | undefined;
  /** Most clients never ask for any. */
  tasks: Tasks | undefined;
  logLevel: string | undefined;
  listedAt: number | undefined;
  /** It is shown its first list. */
  whenListed: (() => void) | undefined;
  lastSeen = Date.now();
  isClosed = false;
  /** Whether it is known after a restart too. */
  isKept = false;

  constructor(id: string, facts: SessionFacts, scope: Scope, stream: ClientStream) {
    this.id = id;
    this.facts = facts;
    this.scope = scope;
    this.stream = stream;
  }

  get identity(): this {
    return this;
  }

  get name(): string {
    return this.id;
  }

  get capabilities(): object {
    return this.facts.capabilities;
  }

  readonly sender = (): Buffer => {
    const { logLevel, facts } = this;
    if (this.description === undefined || this.description.logLevel !== logLevel) {
      const { tasks: _, ...capabilities } = facts.capabilities;
      const { clientInfo } = facts;
      this.description = { logLevel, members: describedMembers({ capabilities, clientInfo, logLevel }) };
    }
    return this.description.members;
  };

  listed(): void {
    if (this.listedAt !== undefined) return;
    this.listedAt = moment();
    this.whenListed?.();
  }

  wantsLog(message: Message): boolean {
    return isWanted(message, this.logLevel);
  }

  announce(_method: string, notification: Buffer): void {
    this.stream.send([notification]);
  }

  tell(message: Message, edits: Edit[]): void {
    this.stream.send([splice(message.bytes, [...edits, ...subscribedAs(message, undefined)])]);
  }

  begin(request: InFlight): boolean {
    if (this.isClosed || this.isFull || this.inFlight.has(request.id)) return false;
    this.inFlight.set(request.id, request);
    this.awaited.set(request.group, (this.awaited.get(request.group) ?? 0) + 1);
    return true;
  }

  get isFull(): boolean {
    return this.inFlight.size >= MAX_IN_FLIGHT;
  }

  finish(request: InFlight): boolean {
    if (this.inFlight.get(request.id) !== request) return false;
    this.inFlight.delete(request.id);
    this.lastSeen = Date.now();
    const left = this.awaited.get(request.group)! - 1;
    if (left === 0) this.awaited.delete(request.group);
    else this.awaited.set(request.group, left);
    // The answer is still to be sent.
    if (this.whenIdle !== undefined && !this.isBusy) setImmediate(() => !this.isBusy && this.whenIdle?.());
    return true;
  }

  cancel(id: RequestId, reason: string | undefined): void {
    this.inFlight.get(id)?.cancel(reason);
  }

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

  /** Everything under way. */
  get requests(): Iterable<InFlight> {
    return this.inFlight.values();
  }

  isAskedFor(request: InFlight): boolean {
    return [...(this.asks?.values() ?? [])].some(({ call }) => call === request);
  }

  /** Fails where one question more would be too many, of this server or of all. */
  checkRoomFor(upstream: Upstream | undefined, count = 1): void {
    const isTooMuch =
      (this.asks?.size ?? 0) + count > MAX_ASKS ||
      (upstream !== undefined && this.asksOf(upstream).length >= MAX_ASKS_OF_SERVER);
    if (isTooMuch) throw tooManyQuestions();
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
    if (ask.source !== undefined) {
      this.settledAsks ??= new WeakMap();
      this.settledAsks.set(ask.source.upstream, performance.now());
    }
    return ask;
  }

  peekAsk(id: RequestId | undefined): Ask | undefined {
    return typeof id === 'number' ? this.asks?.get(id) : undefined;
  }

  /** The questions of this upstream, by the ids of ours under which the client was asked. */
  asksOf(upstream: Upstream): [number, Ask][] {
    return [...(this.asks ?? [])].filter(([, ask]) => ask.source?.upstream === upstream);
  }

  /** Until when that upstream waited for an answer of the client; 0 where it never did. */
  wasAwaitedUntil(upstream: Upstream, now: number): number {
    return this.asksOf(upstream).length > 0 ? now : (this.settledAsks?.get(upstream) ?? 0);
  }

  keepAlive(): void {
    this.stream.keepAlive();
    for (const { responder } of this.inFlight.values()) responder.keepAlive();
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
