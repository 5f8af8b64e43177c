import { HttpExchange } from '../../channels/http-client/exchange.ts';
import { ConnectionPool } from '../../channels/http-client/pool.ts';
import { requestHead } from '../../channels/http-client/request-head.ts';
import type { ResponseHead } from '../../channels/http-client/response-head.ts';
import { Gathered } from '../../protocol/gathered.ts';
import { join } from '../../protocol/jsonrpc.ts';
import { SseParser } from '../../protocol/sse.ts';
import { apiPassFor } from '../access.ts';
import { noSwitchboard, refusalOf } from '../api.ts';

const MAX_EVENT_BYTES = 256 * 1024 * 1024;

/** Posts to the API and reads the events that it answers with, to their end. Fails where it is refused, or cut off. */
export async function postForEvents(
  base: string,
  path: string,
  json: object,
  take: (type: string, data: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  const url = new URL(`${base}/api/v1${path}`);
  const { headers, vet } = await apiPassFor(base);
  const pool = new ConnectionPool(url, { vet });
  const types = { accept: 'text/event-stream, application/json', 'content-type': 'application/json' };
  try {
    await new Promise<void>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      const head = requestHead('POST', url, url.pathname, headers, types);
      pool.send(new PostedEvents(base, take, resolve, reject), head, [Buffer.from(JSON.stringify(json))]);
    });
  } finally {
    pool.destroy();
  }
}

class PostedEvents extends HttpExchange {
  private readonly base: string;
  private readonly parser: SseParser;
  private readonly resolve: () => void;
  private readonly reject: (error: unknown) => void;
  private head: ResponseHead | undefined;
  /** Of an answer that is no stream. */
  private readonly body = new Gathered();

  constructor(
    base: string,
    take: (type: string, data: unknown) => void,
    resolve: () => void,
    reject: (error: unknown) => void,
  ) {
    super();
    this.base = base;
    this.resolve = resolve;
    this.reject = reject;
    this.parser = new SseParser(MAX_EVENT_BYTES, {
      event: ({ type, data }) => take(type, JSON.parse(join(data).toString())),
      tooLarge: () => this.fail(new Error(`an event is larger than ${MAX_EVENT_BYTES} bytes`)),
    });
  }

  onHead(head: ResponseHead): void {
    this.head = head;
  }

  onData(chunk: Buffer): void {
    if (!this.isStream) {
      this.body.add(chunk);
      if (this.body.length > MAX_EVENT_BYTES) {
        this.fail(new Error(`the answer is larger than ${MAX_EVENT_BYTES} bytes`));
      }
      return;
    }
    try {
      this.parser.push(chunk);
    } catch (error) {
      this.fail(error);
    }
  }

  onEnd(): void {
    if (this.isStream) this.resolve();
    else this.reject(this.refusal());
  }

  onError(error: Error, neverSent: boolean): void {
    this.reject(
      neverSent ? noSwitchboard(this.base) : new Error(`The connection broke off: ${error.message}`),
    );
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
