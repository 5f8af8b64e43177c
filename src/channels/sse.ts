import { SwitchboardError } from '../errors.ts';
import { Gathered } from '../protocol/gathered.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import { join } from '../protocol/jsonrpc.ts';
import { type SseEvent, SseParser } from '../protocol/sse.ts';
import { type Channel, MAX_UNREAD_MESSAGES, type Receiver } from './channel.ts';
import { isRefusal, networkError, statusError, tooLarge } from './errors.ts';
import type { HttpTarget } from './http.ts';
import { HttpExchange } from './http-client/exchange.ts';
import { ConnectionPool } from './http-client/pool.ts';
import { proxyFor } from './http-client/proxy.ts';
import { requestHead } from './http-client/request-head.ts';
import type { ResponseHead } from './http-client/response-head.ts';

const MAX_ERROR_BYTES = 8 * 1024;
/** The response to a POST only says that it was accepted. One that takes longer does not hold its connection. */
const ACCEPT_TIMEOUT_MS = 30_000;

interface QueuedMessage {
  message: Chunks;
  request: number | undefined;
}

/** HTTP+SSE of 2024-11-05: one stream from the server, which starts with the URL that accepts our messages. */
export class SseChannel implements Channel {
  readonly isStreamable = false;
  private readonly receiver: Receiver;
  private readonly maxBytes: number;
  private readonly url: URL;
  private readonly headers: Record<string, string>;
  private readonly pool: ConnectionPool;
  private endpoint: string | undefined;
  /** Messages sent before the endpoint was known. */
  private queued: QueuedMessage[] = [];
  private readonly pending = new Set<number>();
  /** Set once the server has lost our session. */
  private stale: SwitchboardError | undefined;
  private ended = false;

  constructor(target: HttpTarget, maxBytes: number, receiver: Receiver) {
    this.url = new URL(target.url);
    this.headers = target.headers;
    this.receiver = receiver;
    this.maxBytes = maxBytes;
    this.pool = new ConnectionPool(this.url, { proxy: proxyFor(this.url, process.env) });
    this.openStream();
  }

  send(message: Chunks, request?: number): void {
    const unread = this.queued.length + this.pool.queued;
    if (this.ended || (request === undefined && unread >= MAX_UNREAD_MESSAGES)) return;
    if (request !== undefined) this.pending.add(request);
    if (this.endpoint === undefined) this.queued.push({ message, request });
    else this.post(this.endpoint, message, request);
  }

  /** A server that lost the session may still respond to what it accepted before. */
  settle(request: number | undefined): void {
    if (request !== undefined) this.pending.delete(request);
    if (this.stale !== undefined && this.pending.size === 0) this.end(this.stale);
  }

  abandon(request: number): void {
    this.settle(request);
  }

  ready(): void {}

  async close(): Promise<void> {
    this.ended = true;
    this.pool.destroy();
  }

  private openStream(): void {
    const events = new SseParser(this.maxBytes, {
      event: (event) => this.receive(event),
      // Which request it responds to is unknown, so all must fail.
      tooLarge: () => this.end(tooLarge(this.maxBytes)),
    });
    const head = requestHead('GET', this.url, this.url.pathname + this.url.search, this.headers, {
      accept: 'text/event-stream',
    });
    this.pool.send(
      new EventStream(events, {
        ended: () => {
          this.end(new SwitchboardError('server_unavailable', `${this.url.origin} closed its event stream.`));
        },
        rejected: (head, body) => this.end(statusError(head.status, this.url, body, head)),
        failed: (error) => this.end(networkError(error, this.url)),
      }),
      head,
    );
  }

  private receive(event: SseEvent): void {
    if (event.type === 'endpoint') this.setEndpoint(join(event.data).toString());
    else if (event.type === 'message' && event.data.length > 0) this.receiver.onMessage(event.data);
  }

  private setEndpoint(address: string): void {
    const endpoint = URL.parse(address, this.url);
    // Our headers may hold a token, which must not go to another server.
    if (endpoint === null || endpoint.origin !== this.url.origin) {
      const message = `${this.url.origin} sent an endpoint on another server: ${address}`;
      this.end(new SwitchboardError('server_protocol_error', message));
      return;
    }
    this.endpoint = endpoint.pathname + endpoint.search;
    for (const { message, request } of this.queued) this.post(this.endpoint, message, request);
    this.queued = [];
  }

  private post(path: string, message: Chunks, request: number | undefined): void {
    const fail = (error: SwitchboardError, sent: boolean) => {
      if (request === undefined) this.receiver.log(error.message);
      else this.receiver.onRequestError(request, error, sent);
      this.settle(request);
    };
    const head = requestHead('POST', this.url, path, this.headers, { 'content-type': 'application/json' });
    const post = new Post({
      ended: () => clearTimeout(timer),
      rejected: (head, body) => {
        clearTimeout(timer);
        this.rejected(statusError(head.status, this.url, body, head), head.status, fail);
      },
      failed: (error, neverSent) => {
        clearTimeout(timer);
        fail(networkError(error, this.url), !neverSent);
      },
    });
    // Some servers respond only after the request is done, so a pending request may take longer.
    const expire = () => {
      if (!this.ended && request !== undefined && this.pending.has(request)) timer.refresh();
      else post.abort();
    };
    const timer = setTimeout(expire, ACCEPT_TIMEOUT_MS).unref();
    this.pool.send(post, head, message);
  }

  private rejected(
    error: SwitchboardError,
    status: number,
    fail: (error: SwitchboardError, sent: boolean) => void,
  ): void {
    if (status !== 404) {
      fail(error, !isRefusal(status));
      return;
    }
    // The server lost our session, so it has not accepted the message either.
    if (this.stale === undefined) {
      this.stale = error;
      this.receiver.onStale(error, true);
    }
    fail(error, false);
  }

  private end(error: SwitchboardError): void {
    if (this.ended) return;
    this.ended = true;
    this.pool.destroy();
    this.receiver.onClosed(error);
  }
}

interface Outcome {
  ended(): void;
  /** The status is an error; `body` is the start of the body. */
  rejected(head: ResponseHead, body: string): void;
  failed(error: Error, neverSent: boolean): void;
}

/** Sends a message. The JSON-RPC response comes on the stream, so this one matters only if it is an error. */
class Post extends HttpExchange {
  private readonly outcome: Outcome;
  protected isAccepted = false;
  private head!: ResponseHead;
  private readonly errorBody = new Gathered();

  constructor(outcome: Outcome) {
    super();
    this.outcome = outcome;
  }

  onHead(head: ResponseHead): void {
    this.head = head;
    this.isAccepted = head.status >= 200 && head.status <= 299;
  }

  onData(chunk: Buffer): void {
    if (this.errorBody.length < MAX_ERROR_BYTES) this.errorBody.add(chunk);
  }

  onEnd(): void {
    if (this.isAccepted) this.outcome.ended();
    else this.outcome.rejected(this.head, join(this.errorBody.take()).toString());
  }

  onError(error: Error, neverSent: boolean): void {
    this.outcome.failed(error, neverSent);
  }
}

class EventStream extends Post {
  private readonly events: SseParser;

  constructor(events: SseParser, outcome: Outcome) {
    super(outcome);
    this.events = events;
  }

  override onData(chunk: Buffer): void {
    if (!this.isAccepted) {
      super.onData(chunk);
      return;
    }
    const before = this.events.count;
    this.events.push(chunk);
    this.worked(this.events.count - before);
  }
}
