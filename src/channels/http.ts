import { SwitchboardError } from '../errors.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { SseParser } from '../protocol/sse.ts';
import { type Channel, type Receiver, tooLarge } from './channel.ts';
import { HttpExchange } from './http-client/exchange.ts';
import { ConnectionPool } from './http-client/pool.ts';
import { isHeaderValue, requestHead } from './http-client/request-head.ts';
import type { ResponseHead } from './http-client/response-head.ts';
import { type HttpTarget, networkError, sessionForgotten, statusError } from './http-target.ts';

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
const MAX_RESUMPTIONS = 10;
const GOODBYE_MS = 2_000;
const LINGER_MS = 5_000;

/** Streamable HTTP: every message is a POST of its own; what the server says by itself comes on a GET stream. */
export class HttpChannel implements Channel {
  readonly receiver: Receiver;
  readonly maxBytes: number;
  readonly url: URL;
  private readonly pool: ConnectionPool;
  private readonly configured: Record<string, string>;
  private readonly path: string;
  private readonly exchanges = new Map<number, Exchange>();
  private postHead: string;
  private session: string | undefined;
  private version: string | undefined;
  private closed = false;
  private broken: SwitchboardError | undefined;
  private listening: Exchange | undefined;
  private readonly timers = new Set<NodeJS.Timeout>();

  constructor(target: HttpTarget, maxBytes: number, receiver: Receiver) {
    this.url = new URL(target.url);
    this.path = this.url.pathname + this.url.search;
    this.configured = target.headers;
    this.receiver = receiver;
    this.maxBytes = maxBytes;
    this.pool = new ConnectionPool(this.url);
    this.postHead = this.buildPostHead();
  }

  send(message: Buffer, request?: number): void {
    if (this.closed) return;
    const exchange = new Exchange(this, request);
    if (request !== undefined) this.exchanges.set(request, exchange);
    this.pool.send(exchange, this.postHead, message);
  }

  answered(request: number): void {
    this.exchanges.get(request)?.settle();
    this.exchanges.delete(request);
    this.reportIfBroken();
  }

  abandon(request: number): void {
    this.exchanges.get(request)?.abandon();
    this.exchanges.delete(request);
  }

  ready(version: string): void {
    this.version = version;
    this.postHead = this.buildPostHead();
    this.listen(undefined, 0);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const timer of this.timers) clearTimeout(timer);
    this.listening?.abandon();
    for (const exchange of this.exchanges.values()) exchange.abandon();
    if (this.session !== undefined && this.broken === undefined) await this.sayGoodbye();
    this.pool.destroy();
  }

  /** The first answer that names a session decides. */
  opened(session: string | undefined): void {
    if (session === undefined || this.session !== undefined) return;
    this.session = session;
    this.postHead = this.buildPostHead();
  }

  failed(request: number | undefined, error: SwitchboardError, sent: boolean): void {
    if (request === undefined) this.receiver.log(error.message);
    else if (this.exchanges.delete(request)) this.receiver.failed(request, error, sent);
    this.reportIfBroken();
  }

  /** The server is gone, or has forgotten our session. What is under way may still be answered. */
  breaks(error: SwitchboardError): void {
    this.broken ??= error;
  }

  hasSession(): boolean {
    return this.session !== undefined;
  }

  /** A stream ended before the answer came, at an event that the server can go on from. */
  resume(request: number, lastEventId: string, retryMs: number | undefined, attempt: number): boolean {
    if (this.closed || attempt >= MAX_RESUMPTIONS) return false;
    const delayMs = retryMs ?? FIRST_RETRY_MS;
    this.receiver.paused(request, delayMs);
    this.later(delayMs, () => {
      if (!this.exchanges.has(request)) return;
      const exchange = new Exchange(this, request, attempt + 1, lastEventId);
      this.exchanges.set(request, exchange);
      this.get(exchange, lastEventId);
    });
    return true;
  }

  /** The GET stream ended; it is opened again, ever more slowly while it fails. */
  listenAgain(lastEventId: string | undefined, retryMs: number | undefined, failures: number): void {
    this.listening = undefined;
    if (this.closed || this.broken !== undefined) return;
    const backoff = Math.min(FIRST_RETRY_MS * 2 ** failures, MAX_RETRY_MS);
    this.later(retryMs ?? backoff * (0.5 + Math.random() / 2), () => this.listen(lastEventId, failures));
  }

  private listen(lastEventId: string | undefined, failures: number): void {
    this.listening = new Exchange(this, undefined, failures, lastEventId, true);
    this.get(this.listening, lastEventId);
  }

  private get(exchange: Exchange, lastEventId: string | undefined): void {
    const resumption = lastEventId === undefined ? {} : { 'last-event-id': asHeaderValue(lastEventId) };
    this.pool.send(exchange, this.buildHead('GET', { accept: 'text/event-stream', ...resumption }));
  }

  private later(milliseconds: number, action: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      if (!this.closed) action();
    }, milliseconds);
    timer.unref();
    this.timers.add(timer);
  }

  private reportIfBroken(): void {
    if (this.broken === undefined || this.closed || this.exchanges.size > 0) return;
    this.closed = true;
    this.listening?.abandon();
    for (const timer of this.timers) clearTimeout(timer);
    this.pool.destroy();
    this.receiver.closed(this.broken);
  }

  private sayGoodbye(): Promise<void> {
    return new Promise((resolve) => {
      const patience = setTimeout(resolve, GOODBYE_MS);
      const goodbye = new Goodbye(() => {
        clearTimeout(patience);
        resolve();
      });
      this.pool.send(goodbye, this.buildHead('DELETE', {}));
    });
  }

  private buildPostHead(): string {
    return this.buildHead('POST', {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    });
  }

  private buildHead(method: string, own: Record<string, string>): string {
    return requestHead(method, this.url, this.path, this.configured, {
      ...own,
      ...(this.session === undefined ? {} : { 'mcp-session-id': this.session }),
      ...(this.version === undefined ? {} : { 'mcp-protocol-version': this.version }),
    });
  }
}

/** One HTTP exchange: a POST with its answer, a resumed answer, or the GET stream (`standing`). */
class Exchange extends HttpExchange {
  private readonly channel: HttpChannel;
  private readonly request: number | undefined;
  private readonly attempt: number;
  private readonly standing: boolean;
  private readonly resumedFrom: string | undefined;
  private status = 0;
  private location: string | undefined;
  private events: SseParser | undefined;
  private body: Buffer[] = [];
  private bodyBytes = 0;
  private retryMs: number | undefined;
  private heard = false;
  private abandoned = false;
  private ended = false;
  private settled = false;

  constructor(
    channel: HttpChannel,
    request: number | undefined,
    attempt = 0,
    resumedFrom?: string,
    standing = false,
  ) {
    super();
    this.channel = channel;
    this.request = request;
    this.attempt = attempt;
    this.resumedFrom = resumedFrom;
    this.standing = standing;
  }

  abandon(): void {
    this.abandoned = true;
    this.abort();
  }

  /** The answer came. A server that leaves its stream open after that does not keep the connection. */
  settle(): void {
    this.settled = true;
    if (this.events === undefined) return;
    setTimeout(() => {
      if (!this.ended) this.abandon();
    }, LINGER_MS).unref();
  }

  onHead({ status, contentType, sessionId, location }: ResponseHead): void {
    this.status = status;
    this.location = location;
    if (status < 200 || status > 299) return;
    this.channel.opened(sessionId);
    if (contentType.startsWith('text/event-stream')) {
      this.events = new SseParser(this.channel.maxBytes, {
        event: ({ data }) => this.message(data),
        retry: (milliseconds) => {
          this.retryMs = milliseconds;
        },
        tooLarge: () => this.tooLarge(),
      });
    }
  }

  onData(chunk: Buffer): void {
    if (this.events !== undefined) {
      this.events.push(chunk);
      return;
    }
    this.bodyBytes += chunk.length;
    if (this.bodyBytes > this.channel.maxBytes) {
      this.abort();
      this.onError(tooLarge(this.channel.maxBytes), false);
    } else {
      this.body.push(chunk);
    }
  }

  onEnd(): void {
    this.ended = true;
    if (this.abandoned) return;
    if (this.standing) this.standingEnded();
    else if (this.status < 200 || this.status > 299) this.refused();
    else if (this.events !== undefined) this.streamEnded();
    else this.bodyEnded();
  }

  onError(error: Error, unsent: boolean): void {
    this.ended = true;
    if (this.abandoned || this.settled) return;
    if (this.standing) {
      this.channel.listenAgain(this.lastEventId(), undefined, this.attempt + 1);
    } else if (error instanceof SwitchboardError) {
      this.channel.failed(this.request, error, true);
    } else if (this.events === undefined || !this.resumes()) {
      const failure = networkError(error, this.channel.url);
      const neverSent = unsent && this.attempt === 0;
      if (neverSent) this.channel.breaks(failure);
      this.channel.failed(this.request, failure, !neverSent);
    }
  }

  private message(data: Chunks): void {
    if (data.length === 0) return;
    this.heard = true;
    this.channel.receiver.message(data, this.request);
  }

  /** The answer that the stream is for cannot come any more, or it was just this. */
  private tooLarge(): void {
    const error = tooLarge(this.channel.maxBytes);
    this.channel.failed(this.request, error, true);
    if (this.request !== undefined) this.abandon();
  }

  private bodyEnded(): void {
    if (this.request === undefined) return;
    if (this.body.length === 0) {
      this.channel.failed(this.request, noAnswer(this.channel.url), true);
      return;
    }
    this.channel.receiver.message(this.body, this.request);
    if (!this.settled) this.channel.failed(this.request, noAnswer(this.channel.url), true);
  }

  private streamEnded(): void {
    if (this.request === undefined || this.settled || this.resumes()) return;
    this.channel.failed(this.request, noAnswer(this.channel.url), true);
  }

  private refused(): void {
    const { url } = this.channel;
    const forgotten = this.status === 404 && this.channel.hasSession();
    const error = forgotten
      ? sessionForgotten(url)
      : statusError(this.status, url, join(this.body).toString(), this.location);
    if (forgotten) this.channel.breaks(error);
    this.channel.failed(this.request, error, !forgotten);
  }

  private standingEnded(): void {
    // 405: the server has nothing to say by itself. Other refusals are not worth asking again either.
    if (this.status >= 400 && this.status < 500) {
      if (this.status === 404 && this.channel.hasSession()) {
        const error = sessionForgotten(this.channel.url);
        this.channel.breaks(error);
        this.channel.failed(undefined, error, false);
      }
      return;
    }
    this.channel.listenAgain(this.lastEventId(), this.retryMs, this.heard ? 0 : this.attempt + 1);
  }

  private resumes(): boolean {
    const lastEventId = this.lastEventId();
    if (this.request === undefined || lastEventId === undefined) return false;
    return this.channel.resume(this.request, lastEventId, this.retryMs, this.heard ? 0 : this.attempt);
  }

  private lastEventId(): string | undefined {
    const lastEventId = this.events?.lastEventId ?? this.resumedFrom;
    return lastEventId !== undefined && isHeaderValue(asHeaderValue(lastEventId)) ? lastEventId : undefined;
  }
}

/** The end of a session. How the server takes it makes no difference: the session is over for us. */
class Goodbye extends HttpExchange {
  private readonly said: () => void;

  constructor(said: () => void) {
    super();
    this.said = said;
  }

  onHead(): void {}

  onData(): void {}

  onEnd(): void {
    this.said();
  }

  onError(): void {
    this.said();
  }
}

/** Headers are bytes; ids of events are text, and travel as its UTF-8. */
function asHeaderValue(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function noAnswer(url: URL): SwitchboardError {
  return new SwitchboardError('server_protocol_error', `${url.origin} ended its answer without giving one.`);
}
