import { HttpExchange } from '../channels/http-client/exchange.ts';
import { ConnectionPool } from '../channels/http-client/pool.ts';
import { proxyFor } from '../channels/http-client/proxy.ts';
import { requestHead } from '../channels/http-client/request-head.ts';
import type { ResponseHead } from '../channels/http-client/response-head.ts';
import { Gathered } from '../protocol/gathered.ts';
import { join } from '../protocol/jsonrpc.ts';
import { SseParser } from '../protocol/sse.ts';
import { apiPassFor } from './access.ts';
import { refusalOf } from './api.ts';
import { explained } from './reach.ts';
import { NeverSentError } from './request.ts';

const MAX_BYTES = 256 * 1024 * 1024;

type OnEvent = (type: string, data: unknown) => void;

/** Without an error, the server or the signal ended the stream. */
interface StreamEnd {
  error: Error | undefined;
  /** Whether it ended before any response. */
  isUnanswered?: boolean;
}

/**
 * Reads an event stream until it ends or `signal` aborts. Throws what `onEvent` throws, and the API's error if there is no
 * stream. With `json` the request is a POST.
 */
export async function readEvents(
  base: string,
  path: string,
  onEvent: OnEvent,
  signal: AbortSignal,
  json?: object,
): Promise<StreamEnd> {
  const url = new URL(`${base}/api/v1${path}`);
  const { headers, ...trust } = await apiPassFor(base);
  const pool = new ConnectionPool(url, { ...trust, proxy: proxyFor(url, process.env) });
  const types = {
    accept: 'text/event-stream, application/json',
    ...(json === undefined ? {} : { 'content-type': 'application/json' }),
  };
  try {
    const end = await new Promise<StreamEnd>((resolve, reject) => {
      if (signal.aborted) return resolve({ error: undefined });
      signal.addEventListener('abort', () => resolve({ error: undefined }), { once: true });
      const head = requestHead(
        json === undefined ? 'GET' : 'POST',
        url,
        url.pathname + url.search,
        headers,
        types,
      );
      const exchange = new EventExchange(base, onEvent, resolve, reject);
      pool.send(exchange, head, json && [Buffer.from(JSON.stringify(json))]);
    });
    const why = end.isUnanswered ? await explained(base, end.error) : end.error;
    if (why !== end.error) throw why;
    return end;
  } catch (error) {
    throw await explained(base, error);
  } finally {
    pool.destroy();
  }
}

class EventExchange extends HttpExchange {
  private readonly base: string;
  private readonly parser: SseParser;
  private readonly resolve: (end: StreamEnd) => void;
  private readonly reject: (error: unknown) => void;
  private head: ResponseHead | undefined;
  /** The body of a response that is not a stream. */
  private readonly body = new Gathered();

  constructor(
    base: string,
    onEvent: OnEvent,
    resolve: (end: StreamEnd) => void,
    reject: (error: unknown) => void,
  ) {
    super();
    this.base = base;
    this.resolve = resolve;
    this.reject = reject;
    this.parser = new SseParser(MAX_BYTES, {
      event: ({ type, data }) => onEvent(type, JSON.parse(join(data).toString())),
      tooLarge: () => this.fail(new Error(`an event is larger than ${MAX_BYTES} bytes`)),
    });
  }

  onHead(head: ResponseHead): void {
    this.head = head;
  }

  onData(chunk: Buffer): void {
    if (!this.isStream) {
      this.body.add(chunk);
      if (this.body.length > MAX_BYTES)
        this.fail(new Error(`the response is larger than ${MAX_BYTES} bytes`));
      return;
    }
    try {
      this.parser.push(chunk);
    } catch (error) {
      this.fail(error);
    }
  }

  onEnd(): void {
    if (this.isStream) this.resolve({ error: undefined });
    else this.reject(this.refusal());
  }

  onError(error: Error, neverSent: boolean): void {
    if (neverSent) this.reject(new NeverSentError(error.message, { cause: error }));
    else if (this.head === undefined) this.resolve({ error, isUnanswered: true });
    else this.resolve({ error });
  }

  private get isStream(): boolean {
    return this.head?.status === 200 && this.head.contentType.startsWith('text/event-stream');
  }

  private refusal(): unknown {
    const { status, contentType } = this.head!;
    try {
      return refusalOf(this.base, { status, contentType, body: join(this.body.take()) });
    } catch (error) {
      return error;
    }
  }

  private fail(error: unknown): void {
    this.abort();
    this.reject(error);
  }
}
