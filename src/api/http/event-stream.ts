import type { ServerResponse } from 'node:http';
import { openEventStream, writeEvent } from '../../http/event-stream.ts';
import type { Principal } from '../../identity/principal.ts';
import { sseKeepAlive } from '../../protocol/sse.ts';

const KEEP_ALIVE_MS = 15_000;

/** A response that writes its own body. */
export interface StreamReply {
  stream: (response: ServerResponse) => void;
}

/** Queues events that are sent before the response begins. */
export class EventStream {
  private readonly maxUnreadBytes: number;
  private readonly timer = setInterval(() => this.send(sseKeepAlive), KEEP_ALIVE_MS).unref();
  private response: ServerResponse | undefined;
  private queued: Buffer[] = [];
  private hasEnded = false;
  /** Called once, when nothing more can be sent. */
  onClose = () => {};

  /** A client that leaves more than this unread is disconnected. */
  constructor(maxUnreadBytes: number) {
    this.maxUnreadBytes = maxUnreadBytes;
  }

  begin(response: ServerResponse, first: Buffer): void {
    if (response.destroyed) {
      this.close();
      return;
    }
    this.response = response.on('close', () => this.close());
    openEventStream(response);
    response.write(first);
    for (const bytes of this.queued) response.write(bytes);
    this.queued = [];
    if (this.hasEnded || response.req.method === 'HEAD') this.end();
  }

  send(bytes: Buffer): void {
    if (this.hasEnded) return;
    if (this.response === undefined) {
      this.queued.push(bytes);
      return;
    }
    if (!writeEvent(this.response, [bytes], this.maxUnreadBytes)) this.close();
  }

  end(): void {
    this.close();
    this.response?.end();
  }

  private close(): void {
    clearInterval(this.timer);
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.onClose();
  }
}

/** Starts to send events, and returns the first bytes of the stream and a function that unsubscribes. */
export type Subscribe = (stream: EventStream) => { first: Buffer; unsubscribe: () => void };

export interface StreamOwner {
  principal: Principal;
  /** Whether it may still have the stream. */
  isAllowed(): boolean;
}

/** Streams that stay open until the client disconnects, its permission or its subject is removed, or the API closes. */
export class EventStreams {
  private readonly open = new Map<EventStream, StreamOwner>();
  private isClosed = false;

  reply(owner: StreamOwner, maxUnreadBytes: number, subscribe: Subscribe): StreamReply {
    const stream = new EventStream(maxUnreadBytes);
    const { first, unsubscribe } = subscribe(stream);
    this.open.set(stream, owner);
    stream.onClose = () => {
      this.open.delete(stream);
      unsubscribe();
    };
    if (this.isClosed || isOver(owner)) stream.end();
    return { stream: (response) => stream.begin(response, first) };
  }

  /** Ends the streams that the principal may no longer have. */
  check(principal: Principal): void {
    for (const [stream, owner] of this.open) if (owner.principal === principal && isOver(owner)) stream.end();
  }

  endOf(principal: Principal): void {
    for (const [stream, owner] of this.open) if (owner.principal === principal) stream.end();
  }

  close(): void {
    this.isClosed = true;
    for (const stream of this.open.keys()) stream.end();
  }
}

function isOver({ principal, isAllowed }: StreamOwner): boolean {
  return principal.isEnded || !isAllowed();
}

export function eventBytes(type: string, data: object): Buffer {
  return Buffer.from(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
}
