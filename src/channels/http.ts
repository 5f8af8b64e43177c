import type { SwitchboardError } from '../errors.ts';
import { Gathered } from '../protocol/gathered.ts';
import { type Chunks, requestMessage } from '../protocol/jsonrpc.ts';
import { findResponseId } from '../protocol/response.ts';
import { namesModernEra } from '../protocol/versions.ts';
import { type Channel, MAX_UNREAD_MESSAGES, type Receiver, type RequestKind } from './channel.ts';
import { HttpExchange } from './http-client/exchange.ts';
import { ConnectionPool } from './http-client/pool.ts';
import { proxyFor } from './http-client/proxy.ts';
import { requestHead } from './http-client/request-head.ts';
import type { ResponseHead } from './http-client/response-head.ts';
import { asHeaderValue, MessageExchange } from './message-exchange.ts';
import { backoffMs, settlesWithin } from './timing.ts';

export interface HttpTarget {
  url: string;
  headers: Record<string, string>;
  /** Whether the server knows us by these headers, so that closing must send a DELETE even without a session. */
  isNamed?: boolean;
  /** Checks each connection before anything is sent on it; rejects if it must not be used. */
  vet?: () => Promise<void>;
  /** Only for the command line, with `vet`: trusts whoever `vet` lets pass, whatever the certificate. */
  acceptsAnyCertificate?: boolean;
}

const LISTEN_BACKOFF = { firstMs: 1_000, maxMs: 30_000 };
const RESUME_AFTER_MS = 1_000;
/** The minimum for the `retry` field of event streams. */
const LEAST_RETRY_MS = 100;
const MAX_RESUMPTIONS = 10;
const DELETE_TIMEOUT_MS = 2_000;
const PING_TIMEOUT_MS = 5_000;
/** The ids of other requests start at 1. */
const PING_ID = 0;
const MAX_PROBE_BYTES = 64 * 1024;
/** A server accepts notifications and responses without working on them, so this is enough. */
const NOTIFICATION_TIMEOUT_MS = 30_000;

/** Streamable HTTP: every message is a POST; messages that belong to no request come on a GET stream. */
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
  isModern = false;
  private closed = false;
  private broken: SwitchboardError | undefined;
  private listening: MessageExchange | undefined;
  private hasListened = false;
  private readonly timers = new Set<NodeJS.Timeout>();
  private sessionChecks: ((isKnown: boolean) => void)[] = [];

  constructor(target: HttpTarget, maxBytes: number, receiver: Receiver) {
    this.url = new URL(target.url);
    this.path = this.url.pathname + this.url.search;
    this.configured = target.headers;
    this.isNamed = target.isNamed ?? false;
    this.receiver = receiver;
    this.maxBytes = maxBytes;
    const { vet, acceptsAnyCertificate } = target;
    const proxy = proxyFor(this.url, process.env);
    this.pool = new ConnectionPool(this.url, { vet, acceptsAnyCertificate, proxy });
    this.postHead = this.buildPostHead();
  }

  send(message: Chunks, request?: number, lines?: string, kind?: RequestKind): void {
    if (this.closed || (request === undefined && this.pool.queued >= MAX_UNREAD_MESSAGES)) return;
    const exchange = new MessageExchange(this, request);
    // Requests of the modern era have lines, and no session.
    exchange.takesSession = lines === undefined || kind === 'greeting';
    if (request !== undefined) this.exchanges.set(request, exchange);
    else this.limitTime(exchange);
    this.pool.send(exchange, lines === undefined ? this.postHead : this.postHead + lines, message);
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
    if ((this.session !== undefined || this.isNamed) && this.broken === undefined) await this.deleteSession();
    this.pool.destroy();
  }

  /** The first response with a session id decides. */
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

  /** The server is gone or lost our session. Requests in flight may still get a response. */
  breaks(error: SwitchboardError, isThere: boolean): void {
    if (this.closed || this.broken !== undefined) return;
    this.broken = error;
    this.receiver.onStale(error, isThere);
  }

  /** The hosted server behind this URL ended: the next one at this URL does not know us. */
  serverEnded(error: SwitchboardError): void {
    this.breaks(error, false);
    this.reportIfBroken();
  }

  /** Whether the legacy handshake is done. */
  get isGreeted(): boolean {
    return this.version !== undefined;
  }

  hasSession(): boolean {
    return this.session !== undefined;
  }

  /** Finds out by a ping whether the server still knows our session. Checks at the same time share one ping. */
  checkSession(done: (isKnown: boolean) => void): void {
    this.sessionChecks.push(done);
    if (this.sessionChecks.length > 1) return;
    const { sessionChecks: checks } = this;
    const settle = (status: number | undefined, body?: Buffer[]) => {
      if (this.sessionChecks !== checks) return;
      this.sessionChecks = [];
      // Any response to this very request means that the session is known, even if ping is not.
      const isAnswered = body !== undefined && body.length > 0 && findResponseId(body)?.id === PING_ID;
      for (const check of checks) check(isAnswered || (status !== 400 && status !== 404));
    };
    const ping = new Probe(settle);
    this.later(PING_TIMEOUT_MS, () => {
      ping.abort();
      settle(undefined);
    });
    this.pool.send(ping, this.postHead, [requestMessage(PING_ID, 'ping')]);
  }

  /** A stream ended before its response, after an event that the server can resume from. */
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

  /** The GET stream is open. Unless it resumes the last one, events may be lost. */
  listens(isResumed: boolean): void {
    if (this.hasListened && !isResumed) this.receiver.onMissed();
    this.hasListened = true;
  }

  /** The GET stream ended; it is opened again, with backoff while that fails. */
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

  /** Requests have their own deadlines; anything else must not hold one of the limited connections. */
  private limitTime(exchange: MessageExchange): void {
    const timer = this.later(NOTIFICATION_TIMEOUT_MS, () => {
      exchange.abandon();
      const seconds = NOTIFICATION_TIMEOUT_MS / 1_000;
      this.receiver.log(`${this.url.origin} did not accept a message within ${seconds} s`);
    });
    exchange.onOver = () => {
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

  private deleteSession(): Promise<unknown> {
    const deleted = new Promise<void>((resolve) => {
      this.pool.send(new Probe(() => resolve()), this.buildHead('DELETE', {}));
    });
    return settlesWithin(deleted, DELETE_TIMEOUT_MS);
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

/** An exchange of which only the status and the start of the body matter. */
class Probe extends HttpExchange {
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
    if (this.body.length < MAX_PROBE_BYTES) this.body.add(chunk);
  }

  onEnd(): void {
    this.settled(this.status, this.body.take());
  }

  onError(): void {
    this.settled(undefined, []);
  }
}
