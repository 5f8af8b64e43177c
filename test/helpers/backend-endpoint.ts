import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RpcMessage } from './raw-http.ts';

/** Gives the answer to a request; what comes before it goes to `notify`. */
export type Relay = (message: RpcMessage, notify: (message: object) => void) => Promise<object>;

/** How an `HttpBackend` speaks. */
export interface Endpoint {
  readonly path: string;
  handle(request: IncomingMessage, response: ServerResponse, message: RpcMessage | undefined): Promise<void>;
  forgetSessions(): void;
  dropStreams(): void;
}
