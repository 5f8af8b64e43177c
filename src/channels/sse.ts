import { SwitchboardError } from '../errors.ts';
import { Gathered } from '../protocol/gathered.ts';
import type { Chunks } from '../protocol/jsonrpc.ts';
import { join } from '../protocol/jsonrpc.ts';
import { type SseEvent, SseParser } from '../protocol/sse.ts';
import { type Channel, MAX_UNREAD_MESSAGES, type Receiver, tooLarge } from './channel.ts';
import { HttpExchange } from './http-client/exchange.ts';
import { ConnectionPool } from './http-client/pool.ts';
import { proxyFor } from './http-client/proxy.ts';
import { requestHead } from './http-client/request-head.ts';
import type { ResponseHead } from './http-client/response-head.ts';
import { type HttpTarget, isRefusal, networkError, statusError } from './http-target.ts';

/** How much of a refusal's reason is kept. */
const MAX_REFUSAL_BYTES = 8 * 1024;

/** The answer to a POST only says that it was taken: one that does not come by then keeps no connection. */
const TAKEN_MS = 30_000;

interface Waiting {
  message: Chunks;
  request: number | undefined;
}

/** HTTP+SSE of 2024-11-05: one stream from the server, on which it names the address that takes our messages. */
export class SseChannel implements Channel {
  readonly isStreamable = false;
  private readonly receiver: Receiver;
  private readonly maxBytes: number;
  private readonly url: URL;
  private readonly headers: Record<string, string>;
  private readonly pool: ConnectionPool;
  private endpoint: string | undefined;
  /** Messages sent before the server named its address. */
  private waiting: Waiting[] = [];
  /** Requests without an answer yet. */
  private readonly awaited = new Set<number>();
  /** Set once the server knows nothing of our stream any more. */
  private forgotten: SwitchboardError | undefined;
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
    const unread = this.waiting.length + this.pool.queued;
    if (this.ended || (request === undefined && unread >= MAX_UNREAD_MESSAGES)) return;
    if (request !== undefined) this.awaited.add(request);
    if (this.endpoint === undefined) this.waiting.push({ message, request });
    else this.post(this.endpoint, message, request);
  }

  sendStanding(message: Chunks, request: number): void {
    this.send(message, request);
  }

  settle(request: number): void {
    this.settled(request);
  }

  abandon(request: number): void {
    this.settled(request);
  }

  ready(): void {}

  async close(): Promise<void> {
    this.ended = true;
    this.pool.destroy();
  }

  private openStream(): void {
    const events = new SseParser(this.maxBytes, {
      event: (event) => this.receive(event),
      // Whose answer it is stands in what cannot be kept, so everything under way has to fail.
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
        refused: (head, body) => this.end(statusError(head.status, this.url, body, head)),
        failed: (error) => this.end(networkError(error, this.url)),
      }),
      head,
    );
  }

  private receive(event: SseEvent): void {
    if (event.type === 'endpoint') this.named(join(event.data).toString());
    else if (event.type === 'message' && event.data.length > 0) this.receiver.onMessage(event.data);
  }

  private named(address: string): void {
    const endpoint = URL.parse(address, this.url);
    // Our headers may hold a token: it goes to the configured server and to nobody that it names.
    if (endpoint === null || endpoint.origin !== this.url.origin) {
      this.end(
        new SwitchboardError(
          'server_protocol_error',
          `${this.url.origin} named a foreign endpoint: ${address}`,
        ),
      );
      return;
    }
    this.endpoint = endpoint.pathname + endpoint.search;
    for (const { message, request } of this.waiting) this.post(this.endpoint, message, request);
    this.waiting = [];
  }

  private post(path: string, message: Chunks, request: number | undefined): void {
    const fail = (error: SwitchboardError, sent: boolean) => {
      if (request === undefined) this.receiver.log(error.message);
      else this.receiver.onRequestError(request, error, sent);
      this.settled(request);
    };
    const head = requestHead('POST', this.url, path, this.headers, { 'content-type': 'application/json' });
    const post = new Post({
      ended: () => clearTimeout(patience),
      refused: (head, body) => {
        clearTimeout(patience);
        this.refused(statusError(head.status, this.url, body, head), head.status, fail);
      },
      failed: (error, neverSent) => {
        clearTimeout(patience);
        fail(networkError(error, this.url), !neverSent);
      },
    });
    // Some answer it when they have done what it asks for, so a request has for it as long as it is awaited.
    const giveUp = () => {
      if (!this.ended && request !== undefined && this.awaited.has(request)) patience.refresh();
      else post.abort();
    };
    const patience = setTimeout(giveUp, TAKEN_MS).unref();
    this.pool.send(post, head, message);
  }

  private refused(
    error: SwitchboardError,
    status: number,
    fail: (error: SwitchboardError, sent: boolean) => void,
  ): void {
    if (status !== 404) {
      fail(error, !isRefusal(status));
      return;
    }
    // The server knows nothing of our stream any more, so it has not taken the message either.
    if (this.forgotten === undefined) {
      this.forgotten = error;
      this.receiver.onStale(error, true);
    }
    fail(error, false);
  }

  /** What the server took before it forgot the stream may still be answered on it. */
  private settled(request: number | undefined): void {
    if (request !== undefined) this.awaited.delete(request);
    if (this.forgotten !== undefined && this.awaited.size === 0) this.end(this.forgotten);
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
  /** The server answered with a status that says no; `body` is how its reason begins. */
  refused(head: ResponseHead, body: string): void;
  failed(error: Error, neverSent: boolean): void;
}

/** A message on its way to the server. Its answer comes on the stream: what stands here only matters if it is a refusal. */
class Post extends HttpExchange {
  private readonly outcome: Outcome;
  protected isTaken = false;
  private head!: ResponseHead;
  private readonly refusal = new Gathered();

  constructor(outcome: Outcome) {
    super();
    this.outcome = outcome;
  }

  onHead(head: ResponseHead): void {
    this.head = head;
    this.isTaken = head.status >= 200 && head.status <= 299;
  }

  onData(chunk: Buffer): void {
    if (this.refusal.length < MAX_REFUSAL_BYTES) this.refusal.add(chunk);
  }

  onEnd(): void {
    if (this.isTaken) this.outcome.ended();
    else this.outcome.refused(this.head, join(this.refusal.take()).toString());
  }

  onError(error: Error, neverSent: boolean): void {
    this.outcome.failed(error, neverSent);
  }
}

/** The stream on which everything comes. */
class EventStream extends Post {
  private readonly events: SseParser;

  constructor(events: SseParser, outcome: Outcome) {
    super(outcome);
    this.events = events;
  }

  override onData(chunk: Buffer): void {
    if (!this.isTaken) {
      super.onData(chunk);
      return;
    }
    const before = this.events.count;
    this.events.push(chunk);
    this.worked(this.events.count - before);
  }
}
