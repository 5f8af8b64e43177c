import type { Chunks } from '../../protocol/jsonrpc.ts';
import type { ResponseHead } from './response-head.ts';

/** Holds an exchange: the pool while it is queued, then a connection. */
interface Carrier {
  drop(exchange: HttpExchange): void;
  worked?(messages: number): void;
}

/** One request and its response. Subclasses handle the response. */
export abstract class HttpExchange {
  /** The request line and headers, without Content-Length and the empty line. */
  requestHead = '';
  requestBody: Chunks | undefined;
  carrier: Carrier | undefined;
  /** Whether its connection may carry another exchange afterwards. */
  reusesConnection = true;

  abstract onHead(head: ResponseHead): void;
  abstract onData(chunk: Buffer): void;
  abstract onEnd(): void;
  /** The response failed. `neverSent`: no byte of the request was given to a connected socket. */
  abstract onError(error: Error, neverSent: boolean): void;

  /** This many messages of the response were processed; after many, other work gets its turn. */
  protected worked(messages: number): void {
    this.carrier?.worked?.(messages);
  }

  /** Closes the connection. No handler is called after this. */
  abort(): void {
    this.carrier?.drop(this);
  }
}
