import { HttpExchange } from '../channels/http-client/exchange.ts';
import { ConnectionPool } from '../channels/http-client/pool.ts';
import { requestHead } from '../channels/http-client/request-head.ts';
import type { ResponseHead } from '../channels/http-client/response-head.ts';

interface Answer {
  status: number;
  body: Buffer;
}

/** One GET on a connection of its own. Node's `fetch` takes longer to load than a command takes, and 8 MB. */
export async function get(address: string, timeoutMs: number): Promise<Answer> {
  const url = new URL(address);
  const pool = new ConnectionPool(url);
  let patience: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      patience = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const head = requestHead('GET', url, url.pathname + url.search, {}, { accept: 'application/json' });
      pool.send(new Get(resolve, reject), head);
    });
  } finally {
    clearTimeout(patience);
    pool.destroy();
  }
}

class Get extends HttpExchange {
  private readonly resolve: (answer: Answer) => void;
  private readonly reject: (error: Error) => void;
  private readonly chunks: Buffer[] = [];
  private status = 0;

  constructor(resolve: (answer: Answer) => void, reject: (error: Error) => void) {
    super();
    this.resolve = resolve;
    this.reject = reject;
  }

  onHead({ status }: ResponseHead): void {
    this.status = status;
  }

  onData(chunk: Buffer): void {
    this.chunks.push(chunk);
  }

  onEnd(): void {
    this.resolve({ status: this.status, body: Buffer.concat(this.chunks) });
  }

  onError(error: Error): void {
    this.reject(error);
  }
}
