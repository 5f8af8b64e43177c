import type { Chunks } from '../../protocol/jsonrpc.ts';
import type { ResponseHead } from './response-head.ts';

/** Who has an exchange in hand: the pool while it waits, then a connection. */
interface Carrier {
  drop(exchange: HttpExchange): void;
  /** So many messages of an answer were dealt with. */
  worked?(messages: number): void;
}

/** One request and its answer. Whoever makes requests says here what becomes of the answers. */
export abstract class HttpExchange {
  /** The request up to its headers' end, without Content-Length and the empty line. */
  requestHead = '';
  requestBody: Chunks | undefined;
  carrier: Carrier | undefined;
  /** Whether its connection may carry another exchange after it. */
  leavesConnection = true;

  abstract onHead(head: ResponseHead): void;
  abstract onData(chunk: Buffer): void;
  abstract onEnd(): void;
  /** There is no answer, or no more of it. `neverSent`: no byte of the request was given to a connected socket. */
  abstract onError(error: Error, neverSent: boolean): void;

  /** So many messages of the answer were dealt with: of a great many, others get their turn in between. */
  protected worked(messages: number): void {
    this.carrier?.worked?.(messages);
  }

  /** Nobody wants the answer any more: its connection is closed, and nothing is told after this. */
  abort(): void {
    this.carrier?.drop(this);
  }
}
