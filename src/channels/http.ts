import type { SwitchboardError } from '../errors.ts';
import { Gathered } from '../protocol/gathered.ts';
import { type Chunks, requestMessage } from '../protocol/jsonrpc.ts';
import { greetingLine } from '../protocol/request-lines.ts';
import { findResponseId } from '../protocol/response.ts';
import { namesModernEra } from '../protocol/versions.ts';
import { backoffMs } from './backoff.ts';
import { type Channel, MAX_UNREAD_MESSAGES, type Receiver } from './channel.ts';
import { HttpExchange } from './http-client/exchange.ts';
import { ConnectionPool } from './http-client/pool.ts';
import { proxyFor } from './http-client/proxy.ts';
import { requestHead } from './http-client/request-head.ts';
import type { ResponseHead } from './http-client/response-head.ts';
import type { HttpTarget } from './http-target.ts';
import { asHeaderValue, MessageExchange } from './message-exchange.ts';

const LISTEN_BACKOFF = { firstMs: 1_000, maxMs: 30_000 };
const RESUME_AFTER_MS = 1_000;
/** A server that wants its streams asked for again at once is not asked faster than this. */
const LEAST_RETRY_MS = 100;
const MAX_RESUMPTIONS = 10;
const GOODBYE_MS = 2_000;
const PING_MS = 5_000;
/** The ids of other requests begin with 1. */
const PING_ID = 0;
/** Of the answer to a ping. */
const MAX_INQUIRY_BYTES = 64 * 1024;
/** What is no request is taken by a server, and not worked on while we wait. */
const NOTICE_MS = 30_000;

/** Streamable HTTP: every message is a POST of its own; what the server says by itself comes on a GET stream. */
export class HttpChannel implements Channel {
  readonly isStreamable = true;
  readonly receiver: Receiver;
  readonly maxBytes: number;
  readonly url: URL;
  private readonly pool: ConnectionPool;
  private readonly configured: Record<string, string>;
  private readonly isNamed: boolean;
  private readonly path: string;
  private readonly exchanges = new Map<number, MessageExchange>();
  private postHead: string;
  private session: string | undefined;
  private version: string | undefined;
  /** Whether the server was found to be of the modern era. */
  isModern = false;
  private closed = false;
  private broken: SwitchboardError | undefined;
  private listening: MessageExchange | undefined;
  private hasListened = false;
  private readonly timers = new Set<NodeJS.Timeout>();
  private doubts: ((isKnown: boolean) => void)[] = [];

  constructor(target: HttpTarget, maxBytes: number, receiver: Receiver) {
    this.url = new URL(target.url);
    this.path = this.url.pathname + this.url.search;
    this.configured = target.headers;
    this.isNamed = target.isNamed ?? false;
    this.receiver = receiver;
    this.maxBytes = maxBytes;
    this.pool = new ConnectionPool(this.url, { vet: target.vet, proxy: proxyFor(this.url, process.env) });
    this.postHead = this.buildPostHead();
  }

  send(message: Chunks, request?: number, lines?: string): void {
    if (this.closed || (request === undefined && this.pool.queued >= MAX_UNREAD_MESSAGES)) return;
    const exchange = new MessageExchange(this, request);
    // Only the legacy era has sessions.
    exchange.takesSession = lines === undefined || lines === greetingLine;
    if (request !== undefined) this.exchanges.set(request, exchange);
    else this.limit(exchange);
    this.pool.send(exchange, lines === undefined ? this.postHead : this.postHead + lines, message);
  }

  sendStanding(message: Chunks, request: number, lines: string | undefined): void {
    this.send(message, request, lines);
  }

  settle(request: number): void {
    this.exchanges.get(request)?.settle();
    this.exchanges.delete(request);
    this.reportIfBroken();
  }

  abandon(request: number): void {
    this.exchanges.get(request)?.abandon();
    this.exchanges.delete(request);
    this.reportIfBroken();
  }

  ready(version: string): void {
    if (namesModernEra(version)) {
      this.isModern = true;
      return;
    }
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
    if ((this.session !== undefined || this.isNamed) && this.broken === undefined) await this.sayGoodbye();
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
    else if (this.exchanges.delete(request)) this.receiver.onRequestError(request, error, sent);
    this.reportIfBroken();
  }

  /** The server is gone, or has forgotten our session. What is under way may still be answered. */
  breaks(error: SwitchboardError, isThere: boolean): void {
    if (this.closed || this.broken !== undefined) return;
    this.broken = error;
    this.receiver.onStale(error, isThere);
  }

  /** The server runs no more: whatever answers at its address next knows nothing of us. */
  serverEnded(error: SwitchboardError): void {
    this.breaks(error, false);
    this.reportIfBroken();
  }

  /** Whether the handshake of the legacy era is done. */
  get isGreeted(): boolean {
    return this.version !== undefined;
  }

  hasSession(): boolean {
    return this.session !== undefined;
  }

  /** Finds out whether the server still knows our session, once for all who doubt it at the same time. */
  doubtSession(told: (isKnown: boolean) => void): void {
    this.doubts.push(told);
    if (this.doubts.length > 1) return;
    const { doubts } = this;
    const settle = (status: number | undefined, body?: Buffer[]) => {
      if (this.doubts !== doubts) return;
      this.doubts = [];
      // Who has an answer to just this request knows us, even where it does not know what a ping is.
      const isAnswered = body !== undefined && body.length > 0 && findResponseId(body)?.id === PING_ID;
      for (const tell of doubts) tell(isAnswered || (status !== 400 && status !== 404));
    };
    const ping = new Inquiry(settle);
    this.later(PING_MS, () => {
      ping.abort();
      settle(undefined);
    });
    this.pool.send(ping, this.postHead, [requestMessage(PING_ID, 'ping')]);
  }

  /** A stream ended before the answer came, at an event that the server can go on from. */
  resume(request: number, lastEventId: string, retryMs: number | undefined, attempt: number): boolean {
    if (this.closed || attempt >= MAX_RESUMPTIONS) return false;
    const delayMs = Math.max(retryMs ?? RESUME_AFTER_MS, LEAST_RETRY_MS);
    this.receiver.onRequestPaused(request, delayMs);
    this.later(delayMs, () => {
      if (!this.exchanges.has(request)) return;
      const exchange = new MessageExchange(this, request, attempt + 1, lastEventId);
      this.exchanges.set(request, exchange);
      this.get(exchange, lastEventId);
    });
    return true;
  }

  /** The GET stream is open. Where it does not go on from where the last one ended, something may be lost. */
  listens(isResumed: boolean): void {
    if (this.hasListened && !isResumed) this.receiver.onMissed();
    this.hasListened = true;
  }

  /** The GET stream ended; it is opened again, ever more slowly while it fails. */
  listenAgain(lastEventId: string | undefined, retryMs: number | undefined, failures: number): void {
    this.listening = undefined;
    if (this.closed || this.broken !== undefined) return;
    const backoff = backoffMs(failures + 1, LISTEN_BACKOFF, Math.random());
    const wanted = retryMs === undefined ? backoff : Math.max(retryMs, LEAST_RETRY_MS);
    const delayMs = failures > 1 ? Math.max(wanted, backoff) : wanted;
    this.later(delayMs, () => this.listen(lastEventId, failures));
  }

  private listen(lastEventId: string | undefined, failures: number): void {
    this.listening = new MessageExchange(this, undefined, failures, lastEventId, true);
    this.get(this.listening, lastEventId);
  }

  private get(exchange: MessageExchange, lastEventId: string | undefined): void {
    const resumption = lastEventId === undefined ? {} : { 'last-event-id': asHeaderValue(lastEventId) };
    this.pool.send(exchange, this.buildHead('GET', { accept: 'text/event-stream', ...resumption }));
  }

  /** A request has a deadline of its own. Anything else must not keep a connection for ever: there are only so many. */
  private limit(exchange: MessageExchange): void {
    const timer = this.later(NOTICE_MS, () => {
      exchange.abandon();
      this.receiver.log(`${this.url.origin} took no notice of a message within ${NOTICE_MS / 1_000} s`);
    });
    exchange.whenOver = () => {
      clearTimeout(timer);
      this.timers.delete(timer);
    };
  }

  private later(milliseconds: number, action: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      if (!this.closed) action();
    }, milliseconds);
    timer.unref();
    this.timers.add(timer);
    return timer;
  }

  private reportIfBroken(): void {
    if (this.broken === undefined || this.closed || this.exchanges.size > 0) return;
    this.closed = true;
    this.listening?.abandon();
    for (const timer of this.timers) clearTimeout(timer);
    this.pool.destroy();
    this.receiver.onClosed(this.broken);
  }

  private sayGoodbye(): Promise<void> {
    return new Promise((resolve) => {
      const patience = setTimeout(resolve, GOODBYE_MS);
      const goodbye = new Inquiry(() => {
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

/** An exchange of which only the status matters, and how its answer begins, if that. */
class Inquiry extends HttpExchange {
  private readonly settled: (status: number | undefined, body: Buffer[]) => void;
  private status: number | undefined;
  private readonly body = new Gathered();

  constructor(settled: (status: number | undefined, body: Buffer[]) => void) {
    super();
    this.settled = settled;
  }

  onHead({ status }: ResponseHead): void {
    this.status = status;
  }

  onData(chunk: Buffer): void {
    if (this.body.length < MAX_INQUIRY_BYTES) this.body.add(chunk);
  }

  onEnd(): void {
    this.settled(this.status, this.body.take());
  }

  onError(): void {
    this.settled(undefined, []);
  }
}
