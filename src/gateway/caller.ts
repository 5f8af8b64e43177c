import type { SwitchboardError } from '../errors.ts';
import type { Message } from '../protocol/envelope.ts';
import type { Chunks, RequestId } from '../protocol/jsonrpc.ts';
import type { Era } from '../protocol/versions.ts';
import type { Group } from '../upstreams/group.ts';
import type { Client } from '../upstreams/request.ts';
import type { Tasks } from './legacy/tasks.ts';

/** Where everything goes that belongs to one request of a client. */
export interface Responder {
  /** A message that comes before the answer: progress, a log line, a question of the server. */
  event(message: Chunks): void;
  /** The answer; nothing comes after it. `errorCode` where it is an error: over HTTP the status may depend on it. */
  respond(message: Chunks, errorCode?: number): void;
  /** There will be no answer: the client has cancelled. */
  end(): void;
  /** The server lets go of its stream until later; the client may be asked to do the same. */
  pause(retryMs: number): void;
  /** Time has passed and no answer is there yet. */
  keepAlive(): void;
  /** Whether several answers leave as one message, so that each has to be exactly one. */
  readonly isBatch: boolean;
  /** Whether anything can be said before the answer. */
  readonly takesEvents: boolean;
}

/** For messages that have no client to go to. */
export const discardResponder: Responder = {
  event() {},
  respond() {},
  end() {},
  pause() {},
  keepAlive() {},
  isBatch: false,
  takesEvents: true,
};

/** A request of the client that is not answered yet. */
export interface InFlight {
  readonly id: RequestId;
  /** Whose answer it awaits; undefined where it is ours to answer. */
  readonly group: Group | undefined;
  readonly responder: Responder;
  /** Whether it goes on only when its client has answered what a server asked. */
  readonly awaitsClient: boolean;
  cancel(reason: string | undefined): void;
  /** Answers it with an error now, and gives up what is done for it. */
  fail(error: SwitchboardError): void;
}

/** What a client says of itself. */
export interface ClientFacts {
  capabilities: Record<string, unknown>;
  /** What it calls itself: a name, and a version where it has one. */
  name: string;
}

/** Whoever sends requests: a session of the legacy era, or one single request of the modern era. */
export interface Caller {
  readonly era: Era;
  /** Whom servers take it for: one that comes again as the same keeps what it has there. */
  readonly identity: Client;
  /** By what it is told from others when it comes back with what it was asked for. */
  readonly name: string;
  readonly facts: ClientFacts;
  /** What a server of the modern era is told of it, where its requests do not say that themselves. */
  readonly sender: (() => Buffer) | undefined;
  /** The tasks of the legacy era that servers do for it. */
  tasks: Tasks | undefined;
  /** When it was first shown what is offered; undefined where it never was, or nobody knows. */
  readonly listedAt: number | undefined;
  /** It is shown what is offered. */
  listed(): void;
  /** Whether it has as many requests under way as it may have. */
  readonly isFull: boolean;
  /** False when a request with that id is under way already, or the client has gone. */
  begin(request: InFlight): boolean;
  /** False when it is over already. */
  finish(request: InFlight): boolean;
  /** Whether answers of other groups than this one are awaited. */
  awaitsOthersThan(group: Group): boolean;
  wantsLog(message: Message): boolean;
}

/** What an endpoint hands over: a message of a client, and where its answer goes. */
export interface Incoming<Sender extends Caller = Caller> {
  caller: Sender;
  message: Message;
  responder: Responder;
  /** The header in which a client names the labels that it prefers. */
  prefer: string | undefined;
  /** The projects that the address and the header of the request name; undefined where none is. */
  projects: readonly string[] | undefined;
  /** Headers that repeat what stands in the message, where they have to. */
  headers?: Readonly<Record<string, string | string[] | undefined>> | undefined;
}
