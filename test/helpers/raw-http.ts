import { type IncomingHttpHeaders, type IncomingMessage, request as openRequest } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { Inbox } from './inbox.ts';

/** A JSON-RPC message as a test reads it. */
export interface RpcMessage {
  id?: unknown;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: Record<string, unknown> };
}

export interface RawRequest {
  method?: string;
  headers?: Record<string, string>;
  /** Text and bytes go out as they are, anything else as JSON. */
  body?: unknown;
}

export interface RawAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** The body as JSON; undefined where it is none. */
  json: RpcMessage | undefined;
}

/** Sends an HTTP request with exactly these headers, on a connection of its own. */
export function openExchange(
  url: string,
  { method = 'POST', headers = {}, body }: RawRequest,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = openRequest(url, { method, headers, agent: false }, resolve);
    request.on('error', reject);
    const isReady = body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
    request.end(isReady ? body : JSON.stringify(body));
  });
}

export async function exchange(url: string, request: RawRequest): Promise<RawAnswer> {
  const response = await openExchange(url, request);
  const text = (await buffer(response)).toString();
  const isJson = response.headers['content-type']?.startsWith('application/json');
  return {
    status: response.statusCode!,
    headers: response.headers,
    text,
    json: isJson ? (JSON.parse(text) as RpcMessage) : undefined,
  };
}

/** One event of a text/event-stream, by its fields. */
export interface RawEvent {
  id?: string;
  event?: string;
  retry?: string;
  data?: string;
  /** The data as JSON-RPC, where there is any. */
  message?: RpcMessage;
}

/** An open event stream. */
export class EventStream {
  readonly response: IncomingMessage;
  readonly events = new Inbox<RawEvent>();
  /** Settles when the stream is over, whoever ended it. */
  readonly ended: Promise<void>;
  private text = '';

  constructor(response: IncomingMessage) {
    this.response = response;
    this.ended = new Promise((resolve) => response.once('close', resolve));
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => this.read(chunk));
    response.on('error', () => {});
  }

  /** The first message, past or future, that fits. */
  async message(fits: (message: RpcMessage) => boolean): Promise<RpcMessage> {
    const { message } = await this.events.first(
      (event) => event.message !== undefined && fits(event.message),
    );
    return message!;
  }

  get messages(): RpcMessage[] {
    return this.events.items.flatMap(({ message }) => (message === undefined ? [] : [message]));
  }

  get lastEventId(): string {
    return this.events.items.findLast(({ id }) => id !== undefined)?.id ?? '';
  }

  /** As a broken network does: the socket is gone, without a word. */
  async cut(): Promise<void> {
    this.response.destroy();
    await this.ended;
  }

  private read(chunk: string): void {
    this.text += chunk;
    const blocks = this.text.split('\n\n');
    this.text = blocks.pop()!;
    for (const block of blocks) this.events.add(readEvent(block));
  }
}

function readEvent(block: string): RawEvent {
  const event: Record<string, string> = {};
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name !== '') event[name] = value;
  }
  return event.data?.startsWith('{') ? { ...event, message: JSON.parse(event.data) as RpcMessage } : event;
}
