import type { Principal } from '../identity/principal.ts';
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
  maxSessionsPerPrincipal: number;
  sessionIdleMs: number;
}

export interface ClientFacts {
  capabilities: Record<string, unknown>;
  /** With the version, if it has one. */
  name: string;
}

/** The sender of requests: a session of the legacy era, or one request of the modern era. */
export interface Caller {
  readonly era: Era;
  /** Its identity at servers: a client that returns under the same identity keeps its state there. */
  readonly identity: Client;
  /** Identifies the client when it returns with input. */
  readonly name: string;
  readonly facts: ClientFacts;
  readonly principal: Principal;
  /** Describes the client to a modern server, if its requests do not. */
  readonly sender: (() => Buffer) | undefined;
  /** When it first saw a list, if known. */
  readonly listedAt: number | undefined;
  listed(): void;
  readonly isFull: boolean;
  /** False if a request with that id is in flight, or the client has disconnected. */
  begin(request: InFlight): boolean;
  finish(request: InFlight): boolean;
  awaitsOthersThan(group: Group): boolean;
  wantsLog(message: Message): boolean;
  /** The pending requests of servers to it; undefined in the modern era, which has no requests to clients. */
  readonly serverRequests: ServerRequests | undefined;
  onTaskBegun?(response: Chunks, call: TaskCall): void;
}

export interface Incoming<Sender extends Caller = Caller> {
  caller: Sender;
  message: Message;
  responder: Responder;
  /** The address of the client, if it is known. */
  address: string | undefined;
  prefer: string | undefined;
  /** The projects that the path and the header of the request name. */
  projects: readonly string[] | undefined;
  /** Headers that must agree with the message. */
  headers?: Readonly<Record<string, string | string[] | undefined>> | undefined;
}
