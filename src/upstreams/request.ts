import type { SwitchboardError } from '../errors.ts';
import { asObject } from '../json.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import type { ResponseId } from '../protocol/response.ts';
import { describe, isDescribed, undescribe } from '../protocol/self-description.ts';
import { type Edit, spliceChunks } from '../protocol/splice.ts';
import type { Era } from '../protocol/versions.ts';

/** A client that calls are made for. Its identity owns queues, instances, subscriptions and server requests. */
export interface Client {
  /** Servers that support both eras are called in this one. */
  readonly era: Era;
}

/** Describes a client to its own connection. Evaluated only if one is opened. */
export interface ClientDescription {
  readonly capabilities: object;
}

export interface ClientRequest {
  readonly message: Message;
  /** Changes to make in the message. */
  readonly edits: readonly Edit[];
  /** The server's own name or URI of the target. */
  readonly own: string;
  /** Describes a legacy client to a modern server, as members of `_meta`. Undefined if no client can be asked for input. */
  readonly sender: (() => Buffer) | undefined;
}

/** One request in flight at a server. */
export interface PendingRequest {
  /** Undefined if the request is our own. */
  readonly client: Client | undefined;
  onResponse(chunks: Chunks, at: ResponseId): void;
  onError(error: SwitchboardError, sent: boolean): void;
  onProgress?(message: Message): void;
  /** The response is resumed after this time. */
  onPaused?(retryMs: number): void;
  /** Which parts of a subscription the server accepts. */
  onAcknowledged?(message: Message): void;
}

/** `call` is the request that a message belongs to, if that is certain. */
export interface UpstreamEvents {
  notificationReceived(message: Message, call: PendingRequest | undefined): void;
  requestReceived(message: Message, call: PendingRequest | undefined): void;
  /** Notifications may have been lost. */
  missed(): void;
  /** No new requests can be sent; those in flight may still get a response. */
  stale(error: SwitchboardError, isThere: boolean): void;
  closed(error: SwitchboardError): void;
  log(line: string): void;
  /** Masks secrets in an error of the channel. */
  redacted(error: SwitchboardError): SwitchboardError;
}

/** A client's request as a server of this era gets it. */
export function relayedRequest(
  { message, edits, sender }: ClientRequest,
  id: number,
  era: Era,
  unknownClient: Buffer,
): Chunks {
  const idBytes = Buffer.from(String(id), 'latin1');
  const all: Edit[] = [{ ...message.idSpan!, bytes: idBytes }, ...edits];
  if (message.wantedProgress !== undefined) all.push({ ...message.wantedProgress, bytes: idBytes });
  if (era === 'modern') {
    if (!isDescribed(message)) all.push(describe(message, sender?.() ?? unknownClient));
  } else if (message.claims !== undefined) {
    all.push(...undescribe(message));
  }
  return spliceChunks(message.bytes, all);
}

export function withMeta(params: unknown, meta: object): object {
  const { _meta: given, ...rest } = asObject(params);
  return { ...rest, _meta: { ...asObject(given), ...meta } };
}
