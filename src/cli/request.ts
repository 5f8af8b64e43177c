import { HttpExchange } from '../channels/http-client/exchange.ts';
import { ConnectionPool } from '../channels/http-client/pool.ts';
import { requestHead } from '../channels/http-client/request-head.ts';
import type { ResponseHead } from '../channels/http-client/response-head.ts';
import { Gathered } from '../protocol/gathered.ts';
import { join } from '../protocol/jsonrpc.ts';

/** More than any answer of the API. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

export interface Answer {
  status: number;
  /** In lower case; empty where there is none. */
  contentType: string;
  body: Buffer;
}

interface RequestOptions {
  timeoutMs: number;
  headers?: Record<string, string>;
  /** Looks at the connection before anything is sent. */
  vet?: () => Promise<void>;
  /** Sent as JSON. */
  json?: unknown;
}

/** Nobody was there to take the request. */
export class NeverSentError extends Error {}

/** One request on a connection of its own. Node's `fetch` takes longer to load than a command takes, and 8 MB. */
export async function request(method: string, address: string, options: RequestOptions): Promise<Answer> {
  const { timeoutMs, headers = {}, vet, json } = options;
  const url = new URL(address);
  const pool = new ConnectionPool(url, { vet });
  const body = json === undefined ? undefined : Buffer.from(JSON.stringify(json));
  const own = {
    accept: 'application/json',
    // Also without a body, so that nobody takes the request for one that a web page could make.
    ...(body === undefined && method !== 'POST' ? {} : { 'content-type': 'application/json' }),
  };
  let patience: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      patience = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const head = requestHead(method, url, url.pathname + url.search, headers, own);
      pool.send(new WholeAnswer(resolve, reject), head, body && [body]);
    });
  } finally {
    clearTimeout(patience);
    pool.destroy();
  }
}

class WholeAnswer extends HttpExchange {
  private readonly resolve: (answer: Answer) => void;
  private readonly reject: (error: Error) => void;
  private readonly body = new Gathered();
  private head: ResponseHead | undefined;

  constructor(resolve: (answer: Answer) => void, reject: (error: Error) => void) {
    super();
    this.resolve = resolve;
    this.reject = reject;
  }

  onHead(head: ResponseHead): void {
    this.head = head;
  }

  onData(chunk: Buffer): void {
    this.body.add(chunk);
    if (this.body.length <= MAX_ANSWER_BYTES) return;
    this.abort();
    this.reject(new Error(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`));
  }

  onEnd(): void {
    const { status, contentType } = this.head!;
    this.resolve({ status, contentType, body: join(this.body.take()) });
  }

  onError(error: Error, neverSent: boolean): void {
    this.reject(neverSent ? new NeverSentError(error.message, { cause: error }) : error);
  }
}
