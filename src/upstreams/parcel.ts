import type { SwitchboardError } from '../errors.ts';
import type { AnswerId } from '../protocol/answer.ts';
import type { Message } from '../protocol/envelope.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import type { Errand } from './group.ts';
import type { Able, Letter, Upstream } from './upstream.ts';

/** A request that some replica of a group is to answer. */
export interface Parcel extends Errand, Letter {
  /** What the client can do; a connection of its own is opened with it. */
  able: Able;
  /** Whether it does no harm to do it twice. */
  isRepeatable: boolean;
  /** How long the client wants to wait. */
  timeoutMs: number | undefined;
}

/** Whoever wants the answer. Exactly one of `answered` and `failed` comes, unless it is cancelled. */
export interface Recipient {
  answered(chunks: Chunks, at: AnswerId): void;
  failed(error: SwitchboardError): void;
  progressed(message: Message): void;
  /** The server will go on with its answer later. */
  paused(retryMs: number): void;
  /** Until when that server waited for this client, `now` where it still does: that time was not the server's. */
  waitedUntil(upstream: Upstream, now: number): number;
}
