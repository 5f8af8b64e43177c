import type { Dispatcher, Pool } from 'undici';
import { SwitchboardError } from '../errors.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { SseParser } from '../protocol/sse.ts';
import { type Channel, type Receiver, tooLarge } from './channel.ts';
import { type HttpTarget, networkError, openPool, statusError, wasNeverSent } from './http-target.ts';

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
const MAX_RESUMPTIONS = 10;
const GOODBYE_MS = 2_000;
const LINGER_MS = 5_000;

type Headers = NonNullable<Dispatcher.DispatchOptions['headers']>;

/** Streamable HTTP: every message is a POST of its own; what the server says by itself comes on a GET stream. */
export class HttpChannel implements Channel {
  readonly receiver: Receiver;
  readonly maxBytes: number;
  readonly url: URL;
  private readonly pool: Pool;
  private readonly configured: Record<string, string>;
  private readonly path: string;
  private readonly exchanges = new Map<number, Exchange>();
  private postHeaders: Headers;
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
    this.pool = openPool(this.url);
    this.postHeaders = this.headers({
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    });
  }

  send(message: Buffer, request?: number): void {
    if (this.closed) return;
    const exchange = new Exchange(this, request);
    if (request !== undefined) this.exchanges.set(request, exchange);
    this.pool.dispatch(
      { path: this.path, method: 'POST', headers: this.postHeaders, body: message },
      exchange,
    );
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
    this.postHeaders = this.headers({
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    });
    this.listen(undefined, 0);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const timer of this.timers) clearTimeout(timer);
    this.listening?.abandon();
    for (const exchange of this.exchanges.values()) exchange.abandon();
    if (this.session !== undefined && this.broken === undefined) await this.sayGoodbye();
    await this.pool.destroy();
  }

  /** The first answer that names a session decides. */
  opened(session: string | undefined): void {
    if (session === undefined || this.session !== undefined) return;
    this.session = session;
    this.postHeaders = this.headers({
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    });
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
    const resumption = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const headers = this.headers({ accept: 'text/event-stream', ...resumption });
    this.pool.dispatch({ path: this.path, method: 'GET', headers }, exchange);
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
    this.pool.destroy().catch(() => {});
    this.receiver.closed(this.broken);
  }

  private async sayGoodbye(): Promise<void> {
    try {
      const signal = AbortSignal.timeout(GOODBYE_MS);
      const { body } = await this.pool.request({
        path: this.path,
        method: 'DELETE',
        headers: this.headers({}),
        signal,
      });
      await body.dump();
    } catch {
      // The server may be gone, or not know DELETE: it ends the session by itself then.
    }
  }

  private headers(more: Record<string, string>): Headers {
    return {
      ...this.configured,
      ...more,
      ...(this.session === undefined ? {} : { 'mcp-session-id': this.session }),
      ...(this.version === undefined ? {} : { 'mcp-protocol-version': this.version }),
    };
  }
}

/** One HTTP exchange: a POST with its answer, a resumed answer, or the GET stream (`standing`). */
class Exchange implements Dispatcher.DispatchHandler {
  private readonly channel: HttpChannel;
  private readonly request: number | undefined;
  private readonly attempt: number;
  private readonly standing: boolean;
  private readonly resumedFrom: string | undefined;
  private controller: Dispatcher.DispatchController | undefined;
  private status = 0;
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
    this.channel = channel;
    this.request = request;
    this.attempt = attempt;
    this.resumedFrom = resumedFrom;
    this.standing = standing;
  }

  abandon(): void {
    this.abandoned = true;
    this.controller?.abort(new Error('abandoned'));
  }

  /** The answer came. A server that leaves its stream open after that does not keep the connection. */
  settle(): void {
    this.settled = true;
    if (this.events === undefined) return;
    setTimeout(() => {
      if (!this.ended) this.abandon();
    }, LINGER_MS).unref();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.abandoned) controller.abort(new Error('abandoned'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.status = status;
    if (status < 200 || status > 299) return;
    this.channel.opened(headers['mcp-session-id'] as string | undefined);
    const type = headers['content-type'];
    if (typeof type === 'string' && type.startsWith('text/event-stream')) {
      this.events = new SseParser(this.channel.maxBytes, {
        event: ({ data }) => this.message(data),
        retry: (milliseconds) => {
          this.retryMs = milliseconds;
        },
        tooLarge: () => this.tooLarge(),
      });
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.events !== undefined) {
      this.events.push(chunk);
      return;
    }
    this.bodyBytes += chunk.length;
    if (this.bodyBytes > this.channel.maxBytes) {
      controller.abort(tooLarge(this.channel.maxBytes));
    } else {
      this.body.push(chunk);
    }
  }

  onResponseEnd(): void {
    this.ended = true;
    if (this.abandoned) return;
    if (this.standing) this.standingEnded();
    else if (this.status < 200 || this.status > 299) this.refused();
    else if (this.events !== undefined) this.streamEnded();
    else this.bodyEnded();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.ended = true;
    if (this.abandoned || this.settled) return;
    if (this.standing) {
      this.channel.listenAgain(this.lastEventId(), undefined, this.attempt + 1);
    } else if (error instanceof SwitchboardError) {
      this.channel.failed(this.request, error, true);
    } else if (this.events === undefined || !this.resumes()) {
      const failure = networkError(error, this.channel.url);
      const neverSent = wasNeverSent(error) && this.attempt === 0;
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
    const error = statusError(this.status, this.channel.url, join(this.body).toString());
    const forgotten = this.status === 404 && this.channel.hasSession();
    if (forgotten) this.channel.breaks(error);
    this.channel.failed(this.request, error, !forgotten);
  }

  private standingEnded(): void {
    // 405: the server has nothing to say by itself. Other refusals are not worth asking again either.
    if (this.status >= 400 && this.status < 500) {
      if (this.status === 404 && this.channel.hasSession()) {
        this.channel.breaks(statusError(this.status, this.channel.url, ''));
        this.channel.failed(
          undefined,
          statusError(this.status, this.channel.url, 'The session is gone.'),
          false,
        );
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
    return this.events?.lastEventId ?? this.resumedFrom;
  }
}

function noAnswer(url: URL): SwitchboardError {
  return new SwitchboardError('server_protocol_error', `${url.origin} ended its answer without giving one.`);
}
