import type { SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import type { ResponseId } from '../protocol/response.ts';
import type { OfferKind } from './lists.ts';
import type { Replica } from './replica.ts';
import type { Client, ClientDescription, ClientRequest } from './request.ts';
import type { Upstream } from './upstream.ts';

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

/** A request that some replica of a group is to answer. */
export interface RoutedRequest extends RequestTarget, ClientRequest {
  /** What the client can do; a connection of its own is opened with it. */
  description: ClientDescription;
  /** Whether it does no harm to do it twice. */
  isRepeatable: boolean;
  /** How long the client wants to wait. */
  timeoutMs: number | undefined;
}

/** Whoever wants the answer. Exactly one of `answered` and `failed` comes, unless it is cancelled. */
export interface ResponseHandler {
  onResponse(chunks: Chunks, at: ResponseId): void;
  onError(error: SwitchboardError): void;
  onProgress(message: Message): void;
  /** The server will go on with its answer later. */
  onPaused(retryMs: number): void;
  /** Until when that server waited for this client, `now` where it still does: that time was not the server's. */
  waitedUntil(upstream: Upstream, now: number): number;
}
