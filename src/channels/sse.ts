import type { Dispatcher, Pool } from 'undici';
import { SwitchboardError } from '../errors.ts';
import { join } from '../protocol/jsonrpc.ts';
import { type SseEvent, SseParser } from '../protocol/sse.ts';
import { type Channel, type Receiver, tooLarge } from './channel.ts';
import { type HttpTarget, networkError, openPool, statusError, wasNeverSent } from './http-target.ts';

interface Waiting {
  message: Buffer;
  request: number | undefined;
}

/** HTTP+SSE of 2024-11-05: one stream from the server, on which it names the address that takes our messages. */
export class SseChannel implements Channel {
  private readonly receiver: Receiver;
  private readonly maxBytes: number;
  private readonly url: URL;
  private readonly headers: Record<string, string>;
  private readonly pool: Pool;
  private endpoint: string | undefined;
  /** Messages sent before the server named its address. */
  private waiting: Waiting[] = [];
  private ended = false;

  constructor(target: HttpTarget, maxBytes: number, receiver: Receiver) {
    this.url = new URL(target.url);
    this.headers = target.headers;
    this.receiver = receiver;
    this.maxBytes = maxBytes;
    this.pool = openPool(this.url);
    this.openStream();
  }

  send(message: Buffer, request?: number): void {
    if (this.ended) return;
    if (this.endpoint === undefined) this.waiting.push({ message, request });
    else this.post(this.endpoint, message, request);
  }

  answered(): void {}

  abandon(): void {}

  ready(): void {}

  async close(): Promise<void> {
    this.ended = true;
    await this.pool.destroy();
  }

  private openStream(): void {
    const events = new SseParser(this.maxBytes, {
      event: (event) => this.receive(event),
      // Whose answer it is stands in what cannot be kept, so everything under way has to fail.
      tooLarge: () => this.end(tooLarge(this.maxBytes)),
    });
    let status = 0;
    let refusal = '';
    this.pool.dispatch(
      {
        path: this.url.pathname + this.url.search,
        method: 'GET',
        headers: { ...this.headers, accept: 'text/event-stream' },
      },
      {
        onRequestStart() {},
        onResponseStart: (_controller, code) => {
          status = code;
        },
        onResponseData: (_controller, chunk) => {
          if (status === 200) events.push(chunk);
          else if (refusal.length < 1_000) refusal += chunk.toString();
        },
        onResponseEnd: () => {
          this.end(
            status === 200
              ? new SwitchboardError('server_unavailable', `${this.url.origin} closed its event stream.`)
              : statusError(status, this.url, refusal),
          );
        },
        onResponseError: (_controller, error) => this.end(networkError(error, this.url)),
      } satisfies Dispatcher.DispatchHandler,
    );
  }

  private receive(event: SseEvent): void {
    if (event.type === 'endpoint') this.named(join(event.data).toString());
    else if (event.type === 'message' && event.data.length > 0) this.receiver.message(event.data);
  }

  private named(address: string): void {
    const endpoint = URL.parse(address, this.url);
    // Our headers may hold a token: it goes to the configured server and to nobody that it names.
    if (endpoint === null || endpoint.origin !== this.url.origin) {
      this.end(
        new SwitchboardError(
          'server_protocol_error',
          `${this.url.origin} named a foreign endpoint: ${address}`,
        ),
      );
      return;
    }
    this.endpoint = endpoint.pathname + endpoint.search;
    for (const { message, request } of this.waiting) this.post(this.endpoint, message, request);
    this.waiting = [];
  }

  private post(path: string, message: Buffer, request: number | undefined): void {
    let status = 0;
    const body: Buffer[] = [];
    const fail = (error: SwitchboardError, sent: boolean) => {
      if (request === undefined) this.receiver.log(error.message);
      else this.receiver.failed(request, error, sent);
    };
    this.pool.dispatch(
      {
        path,
        method: 'POST',
        headers: { ...this.headers, 'content-type': 'application/json' },
        body: message,
      },
      {
        onRequestStart() {},
        onResponseStart: (_controller, code) => {
          status = code;
        },
        onResponseData: (_controller, chunk) => {
          body.push(chunk);
        },
        onResponseEnd: () => {
          if (status < 200 || status > 299) fail(statusError(status, this.url, join(body).toString()), true);
        },
        onResponseError: (_controller, error) => fail(networkError(error, this.url), !wasNeverSent(error)),
      } satisfies Dispatcher.DispatchHandler,
    );
  }

  private end(error: SwitchboardError): void {
    if (this.ended) return;
    this.ended = true;
    this.pool.destroy().catch(() => {});
    this.receiver.closed(error);
  }
}
