import { type IncomingHttpHeaders, type IncomingMessage, request as openPlain } from 'node:http';
import { request as openSecure } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { Inbox } from './inbox.ts';

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
  /** Text and bytes are sent unchanged, anything else as JSON. */
  body?: unknown;
}

export interface RawAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** Undefined if the body is not JSON. */
  json: RpcMessage | undefined;
}

/** Sends exactly these headers, on a new connection. */
export function openExchange(
  url: string,
  { method = 'POST', headers = {}, body }: RawRequest,
): Promise<IncomingMessage> {
  const openRequest = url.startsWith('https:') ? openSecure : openPlain;
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
  const isJson = /^application\/json\b/.test(response.headers['content-type'] ?? '');
  return {
    status: response.statusCode!,
    headers: response.headers,
    text,
    json: isJson ? (JSON.parse(text) as RpcMessage) : undefined,
  };
}

export interface RawEvent {
  id?: string;
  event?: string;
  retry?: string;
  data?: string;
  message?: RpcMessage;
}

export class EventStream {
  readonly response: IncomingMessage;
  readonly events = new Inbox<RawEvent>();
  /** Resolves when either side closes the stream. */
  readonly ended: Promise<void>;
  private text = '';

  constructor(response: IncomingMessage) {
    this.response = response;
    this.ended = new Promise((resolve) => response.once('close', resolve));
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => this.read(chunk));
    response.on('error', () => {});
  }

  /** The first match, past or future. */
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

  /** Destroys the socket, as a broken network does. */
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

export const bothTypes = 'application/json, text/event-stream';

export function initialize(
  protocolVersion = '2025-11-25',
  id: unknown = 0,
  capabilities: object = {},
): object {
  const params = { protocolVersion, capabilities, clientInfo: { name: 'raw', version: '1' } };
  return { jsonrpc: '2.0', id, method: 'initialize', params };
}

/** A session over streamable HTTP without retries or automatic streams. */
export class RawSession {
  readonly url: string;
  readonly id: string;
  readonly version: string;
  private readonly own: Record<string, string>;
  private nextId = 1;

  private constructor(url: string, id: string, version: string, own: Record<string, string>) {
    this.own = own;
    this.url = url;
    this.id = id;
    this.version = version;
  }

  /** `own`: headers of all requests, such as a credential. */
  static async open(
    url: string,
    version = '2025-11-25',
    capabilities: object = {},
    own: Record<string, string> = {},
  ): Promise<RawSession> {
    const headers = { 'content-type': 'application/json', accept: bothTypes, ...own };
    const answer = await exchange(url, { headers, body: initialize(version, 0, capabilities) });
    if (answer.status !== 200) throw new Error(`initialize: HTTP ${answer.status} ${answer.text}`);
    const session = new RawSession(url, String(answer.headers['mcp-session-id']), version, own);
    await session.notify('notifications/initialized');
    return session;
  }

  headers(more: Record<string, string> = {}): Record<string, string> {
    return {
      'content-type': 'application/json',
      accept: bothTypes,
      'mcp-session-id': this.id,
      'mcp-protocol-version': this.version,
      ...this.own,
      ...more,
    };
  }

  post(body: unknown, more: Record<string, string> = {}): Promise<RawAnswer> {
    return exchange(this.url, { headers: this.headers(more), body });
  }

  /** Returns the response, even if it is a stream. */
  async request(method: string, params: object = {}, id: unknown = this.nextId++): Promise<RpcMessage> {
    const answer = await this.post({ jsonrpc: '2.0', id, method, params });
    if (answer.json !== undefined) return answer.json;
    const line = answer.text.split('\n').findLast((text) => text.startsWith('data: {'));
    if (line === undefined) throw new Error(`${method}: HTTP ${answer.status} ${answer.text}`);
    return JSON.parse(line.slice('data: '.length)) as RpcMessage;
  }

  call(name: string, toolArguments: object = {}): Promise<RpcMessage> {
    return this.request('tools/call', { name, arguments: toolArguments });
  }

  async callText(name: string, toolArguments: object = {}): Promise<string> {
    const { result = {}, error } = await this.call(name, toolArguments);
    if (error !== undefined) throw new Error(error.message);
    return (result.content as { text: string }[])[0]!.text;
  }

  async toolNames(): Promise<string[]> {
    const { result = {} } = await this.request('tools/list');
    return (result.tools as { name: string }[]).map(({ name }) => name);
  }

  async notify(method: string, params: object = {}): Promise<RawAnswer> {
    return this.post({ jsonrpc: '2.0', method, params });
  }

  /** Sends a request whose response is a stream. */
  async openCall(name: string, toolArguments: object, progressToken: unknown): Promise<EventStream> {
    const params = { name, arguments: toolArguments, _meta: { progressToken } };
    const body = { jsonrpc: '2.0', id: this.nextId++, method: 'tools/call', params };
    return new EventStream(await openExchange(this.url, { headers: this.headers(), body }));
  }

  /** Opens the standing stream, or resumes the stream of that event. */
  async listen(lastEventId?: string): Promise<EventStream> {
    const resumption = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const headers = this.headers({ accept: 'text/event-stream', ...resumption });
    const response = await openExchange(this.url, { method: 'GET', headers });
    if (response.statusCode !== 200) throw new Error(`GET: HTTP ${response.statusCode}`);
    return new EventStream(response);
  }

  end(): Promise<RawAnswer> {
    return exchange(this.url, { method: 'DELETE', headers: this.headers() });
  }
}
