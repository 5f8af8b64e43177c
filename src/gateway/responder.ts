import type { SwitchboardError } from '../errors.ts';
import type { Chunks, RequestId } from '../protocol/jsonrpc.ts';
import type { Group } from '../upstreams/group.ts';

/** Writes everything that belongs to one client request. */
export interface Responder {
  /** Sends a message before the response: progress, a log message, a server's request. */
  event(message: Chunks): void;
  /** Sends the response; nothing follows it. Over HTTP the status may depend on the code of an error. */
  respond(message: Chunks, errorCode?: number): void;
  /** Ends without a response, because the client has cancelled. */
  end(): void;
  /** The server closes its stream until later; the client may be told to do the same. */
  pause(retryMs: number): void;
  keepAlive(): void;
  /** Whether several responses leave as one message, so that each must be exactly one. */
  readonly isBatch: boolean;
  /** Whether anything can be sent before the response. */
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

/** A client's request that has no response yet. */
export interface InFlight {
  readonly id: RequestId;
  /** The group whose response it awaits; undefined if the response is ours. */
  readonly group: Group | undefined;
  readonly responder: Responder;
  /** Whether it is blocked until the client responds to a server's request. */
  readonly awaitsClient: boolean;
  cancel(reason: string | undefined): void;
  /** Responds with an error now, and cancels the work for it. */
  fail(error: SwitchboardError): void;
}
