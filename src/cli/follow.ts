import { HttpExchange } from '../channels/http-client/exchange.ts';
import { ConnectionPool } from '../channels/http-client/pool.ts';
import { requestHead } from '../channels/http-client/request-head.ts';
import type { ResponseHead } from '../channels/http-client/response-head.ts';
import { join } from '../protocol/jsonrpc.ts';
import { SseParser } from '../protocol/sse.ts';
import { apiPassFor } from './access.ts';

const MAX_EVENT_BYTES = 64 * 1024 * 1024;

/** Why an event stream is over: the other side ended it, or the connection broke. */
export type StreamEnd = { error: Error | undefined };

/**
 * Reads an event stream until it ends, or `signal` says that it is enough. Throws where there is no event stream
 * at the address, and what `take` throws.
 */
export async function follow(
  address: string,
  take: (type: string, data: unknown) => void,
  signal: AbortSignal,
): Promise<StreamEnd> {
  if (signal.aborted) return { error: undefined };
  const url = new URL(address);
  const { headers, vet } = await apiPassFor(address);
  const own = { accept: 'text/event-stream', ...headers };
  const pool = new ConnectionPool(url, { vet });
  try {
    return await new Promise((resolve, reject) => {
      if (signal.aborted) return resolve({ error: undefined });
      signal.addEventListener('abort', () => resolve({ error: undefined }), { once: true });
      const head = requestHead('GET', url, url.pathname + url.search, {}, own);
      pool.send(new EventExchange(take, resolve, reject), head);
    });
  } finally {
    pool.destroy();
  }
}

class EventExchange extends HttpExchange {
  private readonly parser: SseParser;
  private readonly resolve: (end: StreamEnd) => void;
  private readonly reject: (error: unknown) => void;

  constructor(
    take: (type: string, data: unknown) => void,
    resolve: (end: StreamEnd) => void,
    reject: (error: unknown) => void,
  ) {
    super();
    this.resolve = resolve;
    this.reject = reject;
    this.parser = new SseParser(MAX_EVENT_BYTES, {
      event: ({ type, data }) => take(type, JSON.parse(join(data).toString())),
      tooLarge: () => this.fail(new Error(`an event is larger than ${MAX_EVENT_BYTES} bytes`)),
    });
  }

  onHead({ status, contentType }: ResponseHead): void {
    if (status === 200 && contentType.startsWith('text/event-stream')) return;
    this.fail(
      new Error(`The Switchboard at the address has no events to follow (HTTP ${status}): is it older?`),
    );
  }

  onData(chunk: Buffer): void {
    try {
      this.parser.push(chunk);
    } catch (error) {
      this.fail(error);
    }
  }

  onEnd(): void {
    this.resolve({ error: undefined });
  }

  onError(error: Error): void {
    this.resolve({ error });
  }

  private fail(error: unknown): void {
    this.abort();
    this.reject(error);
  }
}
