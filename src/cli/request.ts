import { HttpExchange } from '../channels/http-client/exchange.ts';
import { ConnectionPool } from '../channels/http-client/pool.ts';
import { proxyFor } from '../channels/http-client/proxy.ts';
import { requestHead } from '../channels/http-client/request-head.ts';
import type { ResponseHead } from '../channels/http-client/response-head.ts';
import { Gathered } from '../protocol/gathered.ts';
import { join } from '../protocol/jsonrpc.ts';
import { LineSplitter } from '../protocol/lines.ts';
import type { Trust } from './access.ts';

/** Larger than any response of the API. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;

export interface Response {
  status: number;
  /** In lower case; empty if missing. */
  contentType: string;
  /** Never followed: a key is for one address. */
  location: string | undefined;
  body: Buffer;
  /** Whether the body went to `onLine`. */
  isStream: boolean;
}

interface RequestOptions extends Trust {
  timeoutMs: number;
  headers?: Record<string, string>;
  json?: unknown;
  /** Gets each line of a response of JSON Lines, which may be larger than memory. */
  onLine?: ((line: unknown) => void) | undefined;
}

/** Nothing listens at the address, so the request was not sent. */
export class NeverSentError extends Error {}

/** Uses one connection per request. Node's `fetch` needs 8 MB and takes longer to load than a command takes to run. */
export async function request(method: string, address: string, options: RequestOptions): Promise<Response> {
  const { timeoutMs, headers = {}, vet, acceptsAnyCertificate, json, onLine } = options;
  const url = new URL(address);
  const pool = new ConnectionPool(url, { vet, acceptsAnyCertificate, proxy: proxyFor(url, process.env) });
  const body = json === undefined ? undefined : Buffer.from(JSON.stringify(json));
  const own = {
    accept: 'application/json',
    // Also without a body: web pages cannot send this type.
    ...(['GET', 'DELETE'].includes(method) ? {} : { 'content-type': 'application/json' }),
  };
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
      const head = requestHead(method, url, url.pathname + url.search, headers, own);
      pool.send(new WholeResponse(resolve, reject, onLine), head, body && [body]);
    });
  } finally {
    clearTimeout(timer);
    pool.destroy();
  }
}

class WholeResponse extends HttpExchange {
  private readonly resolve: (response: Response) => void;
  private readonly reject: (error: Error) => void;
  private readonly body = new Gathered();
  private head: ResponseHead | undefined;
  private readonly lines: LineSplitter | undefined;
  private isStream = false;

  constructor(
    resolve: (response: Response) => void,
    reject: (error: Error) => void,
    onLine: ((line: unknown) => void) | undefined,
  ) {
    super();
    this.lines =
      onLine &&
      new LineSplitter(MAX_RESPONSE_BYTES, {
        line: (chunks) => onLine(JSON.parse(join(chunks).toString())),
        tooLong: () => this.fail(new Error(`a line is larger than ${MAX_RESPONSE_BYTES} bytes`)),
      });
    this.resolve = resolve;
    this.reject = reject;
  }

  onHead(head: ResponseHead): void {
    this.head = head;
    this.isStream = this.lines !== undefined && head.contentType.startsWith('application/jsonl');
  }

  onData(chunk: Buffer): void {
    if (this.isStream) {
      this.addLines(chunk);
      return;
    }
    this.body.add(chunk);
    if (this.body.length > MAX_RESPONSE_BYTES) {
      this.fail(new Error(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`));
    }
  }

  onEnd(): void {
    const { status, contentType, location } = this.head!;
    const { isStream } = this;
    this.resolve({ status, contentType, location, body: join(this.body.take()), isStream });
  }

  onError(error: Error, neverSent: boolean): void {
    this.reject(neverSent ? new NeverSentError(error.message, { cause: error }) : error);
  }

  private addLines(chunk: Buffer): void {
    try {
      this.lines?.push(chunk);
    } catch (error) {
      this.fail(error as Error);
    }
  }

  private fail(error: Error): void {
    this.abort();
    this.reject(error);
  }
}
