import type { ServerResponse } from 'node:http';
import { openEventStream, writeEvent, writeKeepAlive } from '../../http/event-stream.ts';
import type { Chunks } from '../../protocol/jsonrpc.ts';
import { sseMessage } from '../../protocol/sse.ts';
import { type PostTerms, writeJson } from '../http/exchange.ts';
import type { Responder } from '../responder.ts';

/** Errors that also set the HTTP status; all others have status 200. */
const statusOfCode: Record<number, number> = {
  [-32700]: 400,
  [-32600]: 400,
  [-32601]: 404,
  [-32020]: 400,
  [-32021]: 400,
  [-32022]: 400,
};

/** The response to a modern request: JSON, or events if something precedes it or it takes long. */
export class ModernResponder implements Responder {
  readonly isBatch = false;
  private readonly response: ServerResponse;
  private readonly terms: PostTerms;
  private isStream = false;
  private isOver = false;
  private isLate = false;

  constructor(response: ServerResponse, terms: PostTerms) {
    this.response = response;
    this.terms = terms;
  }

  get takesEvents(): boolean {
    return this.terms.acceptsEvents;
  }

  event(message: Chunks): void {
    if (this.isOver || !this.becomeStream()) return;
    writeEvent(this.response, sseMessage(message, undefined));
  }

  respond(message: Chunks, errorCode?: number): void {
    if (this.isOver) return;
    this.isOver = true;
    const status = errorCode === undefined ? 200 : (statusOfCode[errorCode] ?? 200);
    if (!this.isStream && !(this.terms.prefersEvents && status === 200)) {
      writeJson(this.response, message, undefined, status);
      return;
    }
    this.isOver = false;
    this.event(message);
    this.end();
  }

  end(): void {
    this.isOver = true;
    this.response.end();
  }

  pause(): void {}

  /** The second time, the response becomes a stream, so that no proxy closes the connection. */
  keepAlive(): void {
    if (this.isOver) return;
    if (this.isStream) writeKeepAlive(this.response);
    else if (this.isLate) this.becomeStream();
    this.isLate = true;
  }

  /** False if the client accepts no streams. */
  private becomeStream(): boolean {
    if (this.isStream) return true;
    if (!this.terms.acceptsEvents) return false;
    this.isStream = true;
    openEventStream(this.response);
    return true;
  }
}
