import type { SwitchboardError } from '../errors.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';

/**
 * `greeting`: the first request of the legacy handshake, which opens a session.
 * `standing`: a request that stays open for long, and must not delay others.
 */
export type RequestKind = 'greeting' | 'standing';

/** A two-way pipe of JSON-RPC messages to one MCP server. */
export interface Channel {
  /** The first request id to use, if the server may still respond to requests of an earlier channel. */
  readonly firstRequest?: number;
  /** Whether every request is a separate HTTP exchange: it has headers, and closing it cancels it. */
  readonly isStreamable: boolean;
  /** Whether the server keeps a session for us; absent if the channel itself is the session. */
  hasSession?(): boolean;
  /** Sends one message. `request` is its id if it expects a response; `lines` are added to its HTTP head, if it has one. */
  send(message: Chunks, request?: number, lines?: string, kind?: RequestKind): void;
  /** The response has arrived. */
  settle(request: number): void;
  /** The response is no longer wanted. */
  abandon(request: number): void;
  /** The handshake is done, and agreed on this protocol version. */
  ready(version: string): void;
  /** Closes in order, and resolves when everything behind the channel is gone. */
  close(): Promise<void>;
}

export interface Receiver {
  /** `request` is the request that the message belongs to, if the transport ties the two. */
  onMessage(chunks: Chunks, request?: number): void;
  /** This request gets no response. `sent` is false only if the server certainly has not seen it. */
  onRequestError(request: number, error: SwitchboardError, sent: boolean): void;
  /** The server ended the stream of this response; it is resumed after this time. */
  onRequestPaused(request: number, retryMs: number): void;
  /** Notifications may have been lost while no stream was open. */
  onMissed(): void;
  /**
   * The channel takes no new messages; requests in flight may still get a response. `onClosed` follows. `isThere`: the
   * server still runs, but has lost our session.
   */
  onStale(error: SwitchboardError, isThere: boolean): void;
  /** The channel is closed, and all requests in flight with it. Called once, and not after close(). */
  onClosed(error: SwitchboardError): void;
  /** A line for the log: stderr of the server, invalid output, network problems. */
  log(line: string): void;
}

/** If a server stops reading, further notifications and responses to its requests are dropped. */
export const MAX_UNREAD_MESSAGES = 10_000;
