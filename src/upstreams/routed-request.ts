import type { SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import type { ResponseId } from '../protocol/response.ts';
import type { OfferKind } from './lists.ts';
import type { Replica } from './replica.ts';
import type { Client, ClientDescription, ClientRequest } from './request.ts';
import type { Upstream } from './upstream.ts';

export interface RequestTarget {
  readonly client: Client;
  kind: OfferKind;
  /** The servers' own name or URI of the target. */
  readonly own: string;
  /** Set if the client named one server of the group. */
  server: string | undefined;
  /** The servers that have it, if lists need not show that. */
  among: readonly string[] | undefined;
  /** Labels of servers that the client prefers. */
  labels: Readonly<Record<string, string>> | undefined;
  /** Set if only this replica knows the target. */
  only: Replica | undefined;
}

/** A request that any suitable replica of a group may answer. */
export interface RoutedRequest extends RequestTarget, ClientRequest {
  /** The client capabilities, for opening the client's own connection. */
  description: ClientDescription;
  /** Whether it is safe to retry. */
  isRepeatable: boolean;
  /** The timeout that the client asked for. */
  timeoutMs: number | undefined;
}

/** Receives either a response or an error, exactly once unless the request is cancelled. */
export interface ResponseHandler {
  onResponse(chunks: Chunks, at: ResponseId): void;
  onError(error: SwitchboardError): void;
  onProgress(message: Message): void;
  /** The response is resumed after this time. */
  onPaused(retryMs: number): void;
  /** When the server stopped waiting for this client, or `now` if it still waits: the call timeout excludes it. */
  waitedUntil(upstream: Upstream, now: number): number;
}
