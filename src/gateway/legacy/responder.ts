import type { ServerResponse } from 'node:http';
import type { Chunks } from '../../protocol/jsonrpc.ts';
import { type PostTerms, writeJson } from '../http/exchange.ts';
import type { Responder } from '../responder.ts';
import type { SessionStreams } from './streams.ts';

/** The response to one POST: JSON, or a stream if other messages precede it, it takes long, or the client prefers events. */
export class LegacyResponder implements Responder {
  private readonly response: ServerResponse;
  private readonly streams: SessionStreams;
  private readonly terms: PostTerms;
  private stream: number | undefined;
  private missing: number;
  private responses: Chunks[] | undefined;
  private isLate = false;

  constructor(response: ServerResponse, streams: SessionStreams, terms: PostTerms) {
    this.response = response;
    this.streams = streams;
    this.terms = terms;
    this.missing = terms.requests;
    if (terms.prefersEvents) this.becomeStream();
  }

  get isBatch(): boolean {
    return this.terms.isBatch;
  }

  readonly takesEvents = true;

  event(message: Chunks): void {
    if (this.missing === 0) return;
    if (!this.becomeStream()) this.streams.send(message);
    else this.streams.sendOn(this.stream!, message);
  }

  respond(message: Chunks): void {
    if (this.missing === 0) return;
    this.missing--;
    if (this.stream !== undefined) {
      this.streams.sendOn(this.stream, message);
    } else if (!this.terms.isBatch) {
      writeJson(this.response, message);
      return;
    } else {
      this.responses ??= [];
      this.responses.push(message);
    }
    if (this.missing === 0) this.finish();
  }

  end(): void {
    if (this.missing === 0) return;
    this.missing--;
    if (this.missing === 0) this.finish();
  }

  pause(retryMs: number): void {
    if (this.stream !== undefined) this.streams.pause(this.stream, retryMs);
  }

  /** The second time, the response becomes a stream, so that no proxy closes the connection. */
  keepAlive(): void {
    if (this.stream !== undefined) this.streams.keepAliveOn(this.stream);
    else if (this.isLate && this.missing > 0) this.becomeStream();
    this.isLate = true;
  }

  /** False if the client accepts no streams. */
  private becomeStream(): boolean {
    if (this.stream !== undefined) return true;
    if (!this.terms.acceptsEvents) return false;
    this.stream = this.streams.openFor(this.response);
    for (const message of this.responses ?? []) this.streams.sendOn(this.stream, message);
    this.responses = undefined;
    return true;
  }

  private finish(): void {
    if (this.stream !== undefined) this.streams.finish(this.stream);
    else if (this.responses === undefined) this.response.writeHead(202).end();
    else writeJson(this.response, asArray(this.responses));
  }
}

function asArray(messages: readonly Chunks[]): Buffer[] {
  const parts: Buffer[] = [];
  messages.forEach((message, index) => {
    parts.push(Buffer.from(index === 0 ? '[' : ','), ...message);
  });
  parts.push(Buffer.from(']'));
  return parts;
}
