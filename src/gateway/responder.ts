import type { SwitchboardError } from '../errors.ts';
import type { Chunks, RequestId } from '../protocol/jsonrpc.ts';
import type { Group } from '../upstreams/group.ts';

/** Writes all messages that belong to one client request. */
export interface Responder {
  /** Precedes the response: progress, a log message, a server's request. */
  event(message: Chunks): void;
  /** Nothing may follow. Over HTTP the status may depend on the error code. */
  respond(message: Chunks, errorCode?: number): void;
  /** Ends without a response, after a cancellation. */
  end(): void;
  /** The server has closed its stream for a while; the client may be asked to do the same. */
  pause(retryMs: number): void;
  keepAlive(): void;
  /** Whether several responses leave as one message, so that each must be exactly one JSON value. */
  readonly isBatch: boolean;
  readonly takesEvents: boolean;
}

export const discardResponder: Responder = {
  event() {},
  respond() {},
  end() {},
  pause() {},
  keepAlive() {},
  isBatch: false,
  takesEvents: true,
};

export interface InFlight {
  readonly id: RequestId;
  /** The group whose response it awaits; undefined if the response is ours. */
  readonly group: Group | undefined;
  readonly responder: Responder;
  /** Whether it waits for the client to respond to a server's request. */
  readonly awaitsClient: boolean;
  cancel(reason: string | undefined): void;
  /** Responds with an error at once, and cancels the call. */
  fail(error: SwitchboardError): void;
}
