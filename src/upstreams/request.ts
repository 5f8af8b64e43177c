import type { SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import type { ResponseId } from '../protocol/response.ts';
import type { Edit } from '../protocol/splice.ts';
import type { Era } from '../protocol/versions.ts';

/** Whoever calls are made for. By its identity it has its own slots, instances, subscriptions and questions. */
export interface Client {
  /** A server that speaks both eras is reached in this one. */
  readonly era: Era;
}

/** Whoever can say what a client can do. Nobody asks for that unless a connection is opened for it. */
export interface ClientDescription {
  readonly capabilities: object;
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

/** One request under way at a server. */
export interface PendingRequest {
  /** Undefined where the request is our own. */
  readonly client: Client | undefined;
  /** The answer, with the place of its id. */
  onResponse(chunks: Chunks, at: ResponseId): void;
  onError(error: SwitchboardError, sent: boolean): void;
  onProgress?(message: Message): void;
  /** The server will go on with its answer later. */
  onPaused?(retryMs: number): void;
  /** The server says what of a subscription it will tell of. */
  onAcknowledged?(message: Message): void;
}

/** What a server says by itself. `call` is the request that it belongs to, where that is certain. */
export interface UpstreamEvents {
  notificationReceived(message: Message, call: PendingRequest | undefined): void;
  requestReceived(message: Message, call: PendingRequest | undefined): void;
  /** What the server has said by itself for a while may be lost. */
  missed(): void;
  /** Nothing new can be sent; what is under way may still be answered. */
  stale(error: SwitchboardError, isThere: boolean): void;
  closed(error: SwitchboardError): void;
  log(line: string): void;
  /** Takes secrets out of what the channel says of a failure. */
  redacted(error: SwitchboardError): SwitchboardError;
}
