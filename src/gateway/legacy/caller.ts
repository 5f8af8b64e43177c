import type { Principal } from '../../identity/principal.ts';
import type { Chunks, RequestId } from '../../protocol/jsonrpc.ts';
import type { Message } from '../../protocol/message.ts';
import { describedMembers, subscribedAs } from '../../protocol/self-description.ts';
import { type Edit, splice } from '../../protocol/splice.ts';
import type { ProtocolVersion } from '../../protocol/versions.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Client } from '../../upstreams/request.ts';
import type { Caller, ClientFacts } from '../caller.ts';
import { moment } from '../former-names.ts';
import { isWanted } from '../logging.ts';
import type { InFlight } from '../responder.ts';
import type { Scope } from '../scope.ts';
import type { Subscriber, Subscription } from '../subscriptions.ts';
import { ServerRequests } from './server-requests.ts';
import { type TaskCall, Tasks } from './tasks.ts';

/** The stream for messages that belong to none of the client's requests. */
export interface ClientStream {
  send(message: Chunks): void;
  keepAlive(): void;
  readonly isOpen: boolean;
  /** Ends the open streams; the client may open them again. */
  disconnect(): void;
  close(): void;
}

/** More than all servers together handle at a time. */
const MAX_IN_FLIGHT = 10_000;

export interface SessionFacts extends ClientFacts {
  version: ProtocolVersion;
  clientInfo: object;
}

export class Session implements Caller, Subscriber {
  readonly era = 'legacy';
  readonly id: string;
  readonly facts: SessionFacts;
  readonly principal: Principal;
  /** For requests that name no project. Changes with the permissions of its principal. */
  scope: Scope;
  readonly stream: ClientStream;
  readonly serverRequests: ServerRequests;
  readonly subscriptions = new Map<string, Subscription>();
  private readonly inFlight = new Map<RequestId, InFlight>();
  private readonly awaited = new Map<Group | undefined, number>();
  private whenIdle: (() => void) | undefined;
  private description: { logLevel: string | undefined; members: Buffer } | undefined;
  tasks: Tasks | undefined;
  logLevel: string | undefined;
  listedAt: number | undefined;
  whenListed: (() => void) | undefined;
  lastSeen = Date.now();
  isClosed = false;
  isPersisted = false;

  constructor(id: string, principal: Principal, facts: SessionFacts, scope: Scope, stream: ClientStream) {
    this.id = id;
    this.principal = principal;
    this.facts = facts;
    this.scope = scope;
    this.stream = stream;
    this.serverRequests = new ServerRequests(facts.capabilities, stream);
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

  listChanged(_method: string, notification: Buffer): void {
    this.stream.send([notification]);
  }

  resourceUpdated(message: Message, edits: Edit[]): void {
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
    // The response is not sent yet.
    if (this.whenIdle !== undefined && !this.isBusy) setImmediate(() => !this.isBusy && this.whenIdle?.());
    return true;
  }

  cancel(id: RequestId, reason: string | undefined): void {
    this.inFlight.get(id)?.cancel(reason);
  }

  awaitsOthersThan(group: Group): boolean {
    return this.awaited.size > (this.awaited.has(group) ? 1 : 0);
  }

  /** Rejects new requests, and calls `end` when nothing is in flight. */
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

  get requests(): Iterable<InFlight> {
    return this.inFlight.values();
  }

  onTaskBegun(response: Chunks, call: TaskCall): void {
    this.tasks ??= new Tasks();
    this.tasks.begin(response, call);
  }

  keepAlive(): void {
    this.stream.keepAlive();
    for (const { responder } of this.inFlight.values()) responder.keepAlive();
  }

  close(): void {
    this.isClosed = true;
    // Newest first: a slot that becomes free must not go to a request that is about to be cancelled.
    for (const request of [...this.inFlight.values()].toReversed()) request.cancel('The client has gone.');
    this.stream.close();
    this.serverRequests.close();
  }
}

/** The session behind a client that servers know, unless it is closed. */
export function sessionOf(client: Client | undefined): Session | undefined {
  return client instanceof Session && !client.isClosed ? client : undefined;
}
