import { SwitchboardError } from '../errors.ts';
import { Gathered } from '../protocol/gathered.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { findResponseId } from '../protocol/response.ts';
import { SseParser } from '../protocol/sse.ts';
import type { Receiver } from './channel.ts';
import { isRefusal, networkError, noResponse, sessionLost, statusError, tooLarge } from './errors.ts';
import { HttpExchange } from './http-client/exchange.ts';
import { isHeaderValue } from './http-client/request-head.ts';
import type { ResponseHead } from './http-client/response-head.ts';

/** How long a stream may stay open after its response. */
const LINGER_MS = 5_000;
/** How a legacy server rejects modern requests. */
const legacyRejections: ReadonlySet<number> = new Set([400, 404, 405]);
/** How a modern server rejects legacy requests: wrong version or headers. */
const modernRejection = /"code"\s*:\s*-320(20|22)\b/;
const SEARCHED_BYTES = 4_096;
/** How much is read of the response to a notification, which matters only if it is an error. */
const MAX_NOTIFICATION_RESPONSE_BYTES = 64 * 1024;

interface ExchangeOwner {
  readonly receiver: Pick<Receiver, 'onMessage'>;
  readonly maxBytes: number;
  readonly url: URL;
  readonly isModern: boolean;
  readonly isGreeted: boolean;
  opened(session: string | undefined): void;
  failed(request: number | undefined, error: SwitchboardError, sent: boolean): void;
  breaks(error: SwitchboardError, isThere: boolean): void;
  hasSession(): boolean;
  checkSession(done: (isKnown: boolean) => void): void;
  resume(request: number, lastEventId: string, retryMs: number | undefined, attempt: number): boolean;
  listens(isResumed: boolean): void;
  listenAgain(lastEventId: string | undefined, retryMs: number | undefined, failures: number): void;
}

/** One HTTP exchange: a POST with its response, a resumed response, or the GET stream (`standing`). */
export class MessageExchange extends HttpExchange {
  private readonly channel: ExchangeOwner;
  private readonly request: number | undefined;
  private readonly attempt: number;
  private readonly standing: boolean;
  private readonly resumedFrom: string | undefined;
  private status = 0;
  private head: ResponseHead | undefined;
  private events: SseParser | undefined;
  private readonly body = new Gathered();
  private retryMs: number | undefined;
  private hasReceived = false;
  private abandoned = false;
  private ended = false;
  private settled = false;
  /** Whether the response may name our session. */
  takesSession = true;
  /** Called when the response is complete or has failed. */
  onOver: (() => void) | undefined;

  constructor(
    channel: ExchangeOwner,
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
    // A server that shuts down ends this stream first and the connection a moment later: send nothing in between.
    this.reusesConnection = !standing;
  }

  abandon(): void {
    this.abandoned = true;
    this.abort();
  }

  /** The response arrived. A stream that the server leaves open after it is closed soon. */
  settle(): void {
    this.settled = true;
    if (this.events === undefined) return;
    setTimeout(() => {
      if (!this.ended) this.abandon();
    }, LINGER_MS).unref();
  }

  onHead(head: ResponseHead): void {
    const { status, contentType, sessionId } = head;
    this.status = status;
    this.head = head;
    if (status < 200 || status > 299) return;
    if (this.takesSession) this.channel.opened(sessionId);
    if (this.standing) this.channel.listens(this.resumedFrom !== undefined);
    if (contentType.startsWith('text/event-stream')) {
      this.events = new SseParser(this.maxEventBytes, {
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
      const before = this.events.count;
      this.events.push(chunk);
      this.worked(this.events.count - before);
      return;
    }
    if (this.request === undefined && this.body.length >= MAX_NOTIFICATION_RESPONSE_BYTES) return;
    this.body.add(chunk);
    if (this.body.length <= this.channel.maxBytes) return;
    this.body.clear();
    this.abort();
    this.onError(tooLarge(this.channel.maxBytes), false);
  }

  onEnd(): void {
    this.ended = true;
    this.onOver?.();
    if (this.abandoned) return;
    if (this.standing) this.standingEnded();
    else if (this.status < 200 || this.status > 299) this.rejected();
    else if (this.events !== undefined) this.streamEnded();
    else this.bodyEnded();
  }

  onError(error: Error, unsent: boolean): void {
    this.ended = true;
    this.onOver?.();
    if (this.abandoned || this.settled) return;
    if (this.standing) {
      this.standingBroke(error, unsent);
    } else if (error instanceof SwitchboardError) {
      this.channel.failed(this.request, error, true);
    } else if (this.events === undefined || !this.resumes()) {
      const failure = networkError(error, this.channel.url);
      const neverSent = unsent && this.attempt === 0;
      if (neverSent) this.channel.breaks(failure, false);
      this.channel.failed(this.request, failure, !neverSent);
    }
  }

  private message(data: Chunks): void {
    if (data.length === 0) return;
    this.hasReceived = true;
    this.channel.receiver.onMessage(data, this.request);
  }

  private get maxEventBytes(): number {
    return this.request !== undefined || this.standing
      ? this.channel.maxBytes
      : MAX_NOTIFICATION_RESPONSE_BYTES;
  }

  /** The event may have been the response that the stream is for. */
  private tooLarge(): void {
    const error = tooLarge(this.maxEventBytes);
    this.channel.failed(this.request, error, true);
    if (this.request !== undefined) this.abandon();
  }

  private bodyEnded(): void {
    if (this.request === undefined) return;
    if (this.body.length > 0) this.channel.receiver.onMessage(this.body.take(), this.request);
    if (!this.settled) this.channel.failed(this.request, noResponse(this.channel.url), true);
  }

  private streamEnded(): void {
    if (this.request === undefined || this.settled || this.resumes()) return;
    this.channel.failed(this.request, noResponse(this.channel.url), true);
  }

  private rejected(): void {
    const { url } = this.channel;
    if (this.status === 404 && this.channel.hasSession()) {
      this.sessionLost();
      return;
    }
    const body = this.body.take();
    const reason = join(body);
    const error = statusError(this.status, url, reason.toString(), this.head);
    if (this.isModernRejection(reason)) {
      this.serverReplaced(error);
      return;
    }
    if (isRefusal(this.status)) {
      // A resumed request was accepted long before.
      this.channel.failed(this.request, error, this.resumedFrom !== undefined);
      return;
    }
    // The body may be a JSON-RPC error that the status repeats.
    if (this.request !== undefined && body.length > 0 && findResponseId(body)?.id === this.request) {
      this.channel.receiver.onMessage(body, this.request);
      if (this.settled) return;
    }
    // It accepted requests like this one before.
    if (this.channel.isModern && legacyRejections.has(this.status)) {
      this.serverReplaced(error);
      return;
    }
    if (this.status !== 400 || !this.channel.hasSession()) {
      this.channel.failed(this.request, error, true);
      return;
    }
    // Some servers reject an unknown session like this.
    this.channel.checkSession((isKnown) => {
      if (isKnown) this.channel.failed(this.request, error, true);
      else this.sessionLost();
    });
  }

  private isModernRejection(reason: Buffer): boolean {
    if (this.status !== 400 || !this.channel.isGreeted || this.request === undefined) return false;
    return modernRejection.test(reason.toString('latin1', 0, SEARCHED_BYTES));
  }

  /** Another server responds at this URL now, which needs a new handshake. It has not executed the request. */
  private serverReplaced(error: SwitchboardError): void {
    this.channel.breaks(error, true);
    this.channel.failed(this.request, error, false);
  }

  /** The server has not accepted the message, unless it is only resumed. */
  private sessionLost(): void {
    const error = sessionLost(this.channel.url);
    this.channel.breaks(error, true);
    this.channel.failed(this.request, error, this.resumedFrom !== undefined);
  }

  private standingEnded(): void {
    if (this.status === 404 && this.channel.hasSession()) {
      this.sessionLost();
      return;
    }
    if (this.status === 400 && this.channel.hasSession()) {
      this.channel.checkSession((isKnown) => {
        if (!isKnown) this.sessionLost();
      });
      return;
    }
    // 405: the server has no GET stream. Other rejections are final too, except those that mean "later".
    if (this.status >= 400 && this.status < 500 && this.status !== 408 && this.status !== 429) return;
    this.channel.listenAgain(this.lastEventId(), this.retryMs, this.hasReceived ? 0 : this.attempt + 1);
  }

  private standingBroke(error: Error, unsent: boolean): void {
    if (unsent) {
      // Reconnect now instead of with the next call.
      const failure = networkError(error, this.channel.url);
      this.channel.breaks(failure, false);
      this.channel.failed(undefined, failure, false);
    } else {
      this.channel.listenAgain(this.lastEventId(), undefined, this.hasReceived ? 0 : this.attempt + 1);
    }
  }

  private resumes(): boolean {
    const lastEventId = this.lastEventId();
    if (this.request === undefined || lastEventId === undefined) return false;
    return this.channel.resume(this.request, lastEventId, this.retryMs, this.hasReceived ? 0 : this.attempt);
  }

  private lastEventId(): string | undefined {
    const lastEventId = this.events?.lastEventId ?? this.resumedFrom;
    return lastEventId !== undefined && isHeaderValue(asHeaderValue(lastEventId)) ? lastEventId : undefined;
  }
}

/** Event ids are text; headers carry its UTF-8 bytes. */
export function asHeaderValue(text: string): string {
  return Buffer.from(text).toString('latin1');
}
