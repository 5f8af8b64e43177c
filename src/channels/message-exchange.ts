import { SwitchboardError } from '../errors.ts';
import { Gathered } from '../protocol/gathered.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { findResponseId } from '../protocol/response.ts';
import { SseParser } from '../protocol/sse.ts';
import { type Receiver, tooLarge } from './channel.ts';
import { HttpExchange } from './http-client/exchange.ts';
import { isHeaderValue } from './http-client/request-head.ts';
import type { ResponseHead } from './http-client/response-head.ts';
import { isRefusal, networkError, sessionForgotten, statusError } from './http-target.ts';

const LINGER_MS = 5_000;
/** How a server of the legacy era refuses what one of the modern era would have taken. */
const notThisEra: ReadonlySet<number> = new Set([400, 404, 405]);
/** How a server of the modern era refuses what one of the legacy era would have taken: version or headers are wrong. */
const modernRefusal = /"code"\s*:\s*-320(20|22)\b/;
const SHOWN_BYTES = 4_096;
/** What a server says to a message that is no request is not awaited: so much of it is looked at. */
const UNASKED_BYTES = 64 * 1024;

/** The channel that an exchange belongs to. */
interface ExchangeOwner {
  readonly receiver: Pick<Receiver, 'onMessage'>;
  readonly maxBytes: number;
  readonly url: URL;
  readonly isModern: boolean;
  /** Whether the server has answered before. */
  readonly isGreeted: boolean;
  opened(session: string | undefined): void;
  failed(request: number | undefined, error: SwitchboardError, sent: boolean): void;
  breaks(error: SwitchboardError, isThere: boolean): void;
  hasSession(): boolean;
  doubtSession(told: (isKnown: boolean) => void): void;
  resume(request: number, lastEventId: string, retryMs: number | undefined, attempt: number): boolean;
  listens(isResumed: boolean): void;
  listenAgain(lastEventId: string | undefined, retryMs: number | undefined, failures: number): void;
}

/** One HTTP exchange: a POST with its answer, a resumed answer, or the GET stream (`standing`). */
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
  private heard = false;
  private abandoned = false;
  private ended = false;
  private settled = false;
  /** Whether a session that the answer names is ours. */
  takesSession = true;
  /** Told when its answer is complete, or cannot come. */
  whenOver: (() => void) | undefined;

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
    // A server ends this stream when it shuts down, and the connection a moment later: nothing may go out in between.
    this.leavesConnection = !standing;
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
    if (this.request === undefined && this.body.length >= UNASKED_BYTES) return;
    this.body.add(chunk);
    if (this.body.length <= this.channel.maxBytes) return;
    this.body.clear();
    this.abort();
    this.onError(tooLarge(this.channel.maxBytes), false);
  }

  onEnd(): void {
    this.ended = true;
    this.whenOver?.();
    if (this.abandoned) return;
    if (this.standing) this.standingEnded();
    else if (this.status < 200 || this.status > 299) this.refused();
    else if (this.events !== undefined) this.streamEnded();
    else this.bodyEnded();
  }

  onError(error: Error, unsent: boolean): void {
    this.ended = true;
    this.whenOver?.();
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
    this.heard = true;
    this.channel.receiver.onMessage(data, this.request);
  }

  private get maxEventBytes(): number {
    return this.request !== undefined || this.standing ? this.channel.maxBytes : UNASKED_BYTES;
  }

  /** The answer that the stream is for cannot come any more, or it was just this. */
  private tooLarge(): void {
    const error = tooLarge(this.maxEventBytes);
    this.channel.failed(this.request, error, true);
    if (this.request !== undefined) this.abandon();
  }

  private bodyEnded(): void {
    if (this.request === undefined) return;
    if (this.body.length === 0) {
      this.channel.failed(this.request, noAnswer(this.channel.url), true);
      return;
    }
    this.channel.receiver.onMessage(this.body.take(), this.request);
    if (!this.settled) this.channel.failed(this.request, noAnswer(this.channel.url), true);
  }

  private streamEnded(): void {
    if (this.request === undefined || this.settled || this.resumes()) return;
    this.channel.failed(this.request, noAnswer(this.channel.url), true);
  }

  private refused(): void {
    const { url } = this.channel;
    if (this.status === 404 && this.channel.hasSession()) {
      this.forgotten();
      return;
    }
    const body = this.body.take();
    const reason = join(body);
    const error = statusError(this.status, url, reason.toString(), this.head);
    if (this.speaksAnotherEra(reason)) {
      this.meetAnew(error);
      return;
    }
    if (isRefusal(this.status)) {
      // What is only resumed, the server took long before.
      this.channel.failed(this.request, error, this.resumedFrom !== undefined);
      return;
    }
    // A server may say with the status too that its answer is an error.
    if (this.request !== undefined && body.length > 0 && findResponseId(body)?.id === this.request) {
      this.channel.receiver.onMessage(body, this.request);
      if (this.settled) return;
    }
    // It took requests like this one before: something else answers there now, and has to be met anew.
    if (this.channel.isModern && notThisEra.has(this.status)) {
      this.meetAnew(error);
      return;
    }
    if (this.status !== 400 || !this.channel.hasSession()) {
      this.channel.failed(this.request, error, true);
      return;
    }
    // Some servers answer so when they do not know the session; whether that is it, a ping can tell.
    this.channel.doubtSession((isKnown) => {
      if (isKnown) this.channel.failed(this.request, error, true);
      else this.forgotten();
    });
  }

  /** Whether a server that was spoken with in the words of the legacy era says that it knows only those of the modern era. */
  private speaksAnotherEra(reason: Buffer): boolean {
    if (this.status !== 400 || !this.channel.isGreeted || this.request === undefined) return false;
    return modernRefusal.test(reason.toString('latin1', 0, SHOWN_BYTES));
  }

  /** Something else answers there now. It has not taken the request. */
  private meetAnew(error: SwitchboardError): void {
    this.channel.breaks(error, true);
    this.channel.failed(this.request, error, false);
  }

  /** The session is unknown, so the server has not taken the message; what is only resumed it took long before. */
  private forgotten(): void {
    const error = sessionForgotten(this.channel.url);
    this.channel.breaks(error, true);
    this.channel.failed(this.request, error, this.resumedFrom !== undefined);
  }

  private standingEnded(): void {
    if (this.status === 404 && this.channel.hasSession()) {
      this.forgotten();
      return;
    }
    if (this.status === 400 && this.channel.hasSession()) {
      this.channel.doubtSession((isKnown) => {
        if (!isKnown) this.forgotten();
      });
      return;
    }
    // 405: the server has nothing to say by itself. Other refusals are not worth asking again either, but for "later".
    if (this.status >= 400 && this.status < 500 && this.status !== 408 && this.status !== 429) return;
    this.channel.listenAgain(this.lastEventId(), this.retryMs, this.heard ? 0 : this.attempt + 1);
  }

  private standingBroke(error: Error, unsent: boolean): void {
    if (unsent) {
      // Nobody is there: better to know now than with the next call.
      const failure = networkError(error, this.channel.url);
      this.channel.breaks(failure, false);
      this.channel.failed(undefined, failure, false);
    } else {
      this.channel.listenAgain(this.lastEventId(), undefined, this.heard ? 0 : this.attempt + 1);
    }
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

/** Headers are bytes; ids of events are text, and travel as its UTF-8. */
export function asHeaderValue(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function noAnswer(url: URL): SwitchboardError {
  return new SwitchboardError('server_protocol_error', `${url.origin} ended its answer without giving one.`);
}
