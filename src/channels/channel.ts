import { SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';

/** A two-way pipe of JSON-RPC messages to one MCP server. */
export interface Channel {
  /** Where requests are to be counted from, so that no answer to somebody else's is taken for one of ours. */
  readonly firstRequest?: number;
  /** Whether every request is an HTTP exchange of its own: it has headers, and closing it is cancelling it. */
  readonly isStreamable: boolean;
  /** Whether the server keeps a session for us; not there where the channel itself is one. */
  hasSession?(): boolean;
  /**
   * Sends one message. `request` is its id, where it is a request of ours that awaits an answer. `lines` stand in its head
   * where it has one.
   */
  send(message: Chunks, request?: number, lines?: string): void;
  /** Sends a request that is answered when it is over, and keeps no other from being sent meanwhile. */
  sendStanding(message: Chunks, request: number, lines: string | undefined): void;
  /** The answer to this request has come. */
  settle(request: number): void;
  /** Nobody awaits the answer to this request any more. */
  abandon(request: number): void;
  /** The handshake is done: from now on this version is spoken. */
  ready(version: string): void;
  /** Ends it in an orderly way; settles when everything behind it is gone. */
  close(): Promise<void>;
}

/** What a channel tells its owner. */
export interface Receiver {
  /** One message came. `request` says which request of ours it came back on, where the transport ties the two. */
  onMessage(chunks: Chunks, request?: number): void;
  /** This request gets no answer. `sent` is false only where the server has certainly not seen it. */
  onRequestError(request: number, error: SwitchboardError, sent: boolean): void;
  /** The server let go of the answer's stream; it is asked for again after this time. */
  onRequestPaused(request: number, retryMs: number): void;
  /** What the server has said by itself for a while may be lost: nobody was there to listen. */
  onMissed(): void;
  /**
   * Nothing new can be sent on it; what is under way may still be answered. `closed` follows. `isThere`: the server is
   * still there, it only knows us no more.
   */
  onStale(error: SwitchboardError, isThere: boolean): void;
  /** The channel is gone, and with it everything that was under way. Comes once, and not after close(). */
  onClosed(error: SwitchboardError): void;
  /** A line worth keeping: the server's stderr, junk on its stdout, trouble on the wire. */
  log(line: string): void;
}

/** A server that asks and never reads what it is told is told no more than so much: what it asked for is its own loss. */
export const MAX_UNREAD_MESSAGES = 10_000;

/** Why a request has no answer when the server sent more than we take. */
export function tooLarge(maxBytes: number): SwitchboardError {
  return new SwitchboardError(
    'answer_too_large',
    `The server sent a message over ${maxBytes} bytes (setting maxMessageBytes).`,
  );
}
