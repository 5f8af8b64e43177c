import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import type { Era } from '../protocol/versions.ts';
import type { Group } from '../upstreams/group.ts';
import type { Identity } from '../upstreams/handshake.ts';
import type { Client } from '../upstreams/request.ts';
import type { ServerRequests } from './legacy/server-requests.ts';
import type { TaskCall } from './legacy/tasks.ts';
import type { InFlight, Responder } from './responder.ts';

export interface ClientSettings {
  identity: Identity;
  instance: string;
  maxSessions: number;
  sessionIdleMs: number;
}

export interface ClientFacts {
  capabilities: Record<string, unknown>;
  /** Its name, and its version if it has one. */
  name: string;
}

/** The sender of requests: a session of the legacy era, or one request of the modern era. */
export interface Caller {
  readonly era: Era;
  /** Who it is to servers: a client that returns under the same identity keeps its state there. */
  readonly identity: Client;
  /** Recognizes the client when it returns with input. */
  readonly name: string;
  readonly facts: ClientFacts;
  /** Describes the client to a modern server, if its requests do not. */
  readonly sender: (() => Buffer) | undefined;
  /** When it first saw a list, if known. */
  readonly listedAt: number | undefined;
  listed(): void;
  /** Whether it has as many requests in flight as it may have. */
  readonly isFull: boolean;
  /** False if a request with that id is in flight, or the client has disconnected. */
  begin(request: InFlight): boolean;
  finish(request: InFlight): boolean;
  /** Whether it awaits responses of other groups than this one. */
  awaitsOthersThan(group: Group): boolean;
  wantsLog(message: Message): boolean;
  /** The pending requests of servers to it; undefined in the modern era, which has no requests to clients. */
  readonly serverRequests: ServerRequests | undefined;
  onTaskBegun?(response: Chunks, call: TaskCall): void;
}

/** A client's message, as an endpoint hands it over. */
export interface Incoming<Sender extends Caller = Caller> {
  caller: Sender;
  message: Message;
  responder: Responder;
  /** The labels that the client prefers, from its header. */
  prefer: string | undefined;
  /** The projects that the path and the header of the request name. */
  projects: readonly string[] | undefined;
  /** Headers that must agree with the message. */
  headers?: Readonly<Record<string, string | string[] | undefined>> | undefined;
}
