import type { SwitchboardError } from '../errors.ts';
import type { AnswerId } from '../protocol/answer.ts';
import type { Message } from '../protocol/envelope.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Edit } from '../protocol/splice.ts';
import type { Era } from '../protocol/versions.ts';
import type { OfferKind } from './lists.ts';
import type { Replica } from './replica.ts';
import type { Upstream } from './upstream.ts';

/** Whoever calls are made for. By its identity it has its own slots, instances, subscriptions and questions. */
export interface Client {
  /** A server that speaks both eras is reached in this one. */
  readonly era: Era;
}

/** Whoever can say what a client can do. Nobody asks for that unless a connection is opened for it. */
export interface Able {
  readonly capabilities: object;
}

/** What a replica is wanted for. */
export interface RequestTarget {
  readonly client: Client;
  kind: OfferKind;
  /** The servers' own name or URI of what is asked for. */
  readonly own: string;
  /** Where the client named one server of the group. */
  server: string | undefined;
  /** The servers that have it, where their lists need not say so. */
  among: readonly string[] | undefined;
  /** Labels of servers that the client would rather have. */
  labels: Readonly<Record<string, string>> | undefined;
  /** Where only this one knows what it is about. */
  only: Replica | undefined;
}

/** A client's request as it is handed over. */
export interface ClientRequest {
  readonly message: Message;
  /** What has to change in the message on its way. */
  readonly edits: readonly Edit[];
  /** The server's own name or URI of what it is about. */
  readonly own: string;
  /**
   * What a server of the modern era is told of a client of the legacy one: members of `_meta`. Undefined where nobody is there
   * who could be asked for anything.
   */
  readonly sender: (() => Buffer) | undefined;
}

/** A request that some replica of a group is to answer. */
export interface RoutedRequest extends RequestTarget, ClientRequest {
  /** What the client can do; a connection of its own is opened with it. */
  able: Able;
  /** Whether it does no harm to do it twice. */
  isRepeatable: boolean;
  /** How long the client wants to wait. */
  timeoutMs: number | undefined;
}

/** Whoever wants the answer. Exactly one of `answered` and `failed` comes, unless it is cancelled. */
export interface ResponseHandler {
  answered(chunks: Chunks, at: AnswerId): void;
  failed(error: SwitchboardError): void;
  progressed(message: Message): void;
  /** The server will go on with its answer later. */
  paused(retryMs: number): void;
  /** Until when that server waited for this client, `now` where it still does: that time was not the server's. */
  waitedUntil(upstream: Upstream, now: number): number;
}

/** One request under way at a server. */
export interface PendingRequest {
  /** Undefined where the request is our own. */
  readonly client: Client | undefined;
  /** The answer, with the place of its id. */
  answered(chunks: Chunks, at: AnswerId): void;
  failed(error: SwitchboardError, sent: boolean): void;
  progressed?(message: Message): void;
  /** The server will go on with its answer later. */
  paused?(retryMs: number): void;
  /** The server says what of a subscription it will tell of. */
  acknowledged?(message: Message): void;
}
