import { type IncomingMessage, request as openPlain } from 'node:http';
import { request as openSecure } from 'node:https';
import { bothTypes, EventStream, exchange, type RawAnswer, type RpcMessage } from '../helpers/raw-http.ts';

export const modernVersion = '2026-07-28';
export const subscriptionKey = 'io.modelcontextprotocol/subscriptionId';
export const tasksExtension = 'io.modelcontextprotocol/tasks';

interface ClientOptions {
  name?: string;
  capabilities?: object;
  headers?: Record<string, string>;
}

interface RequestOptions {
  id?: unknown;
  /** Merged into `_meta`; undefined removes a member. */
  meta?: object;
  /** Merged into the headers; undefined removes one. */
  headers?: Record<string, string | undefined>;
}

interface PendingRequest {
  response: Promise<IncomingMessage>;
  /** Closing the connection cancels a modern request. */
  close(): void;
}

export interface Listen {
  stream: EventStream;
  honoured: object;
  meta: object;
}

/** A client of protocol 2026-07-28 that sends exactly what it is given. */
export class RawModern {
  readonly url: string;
  private readonly options: ClientOptions;
  private nextId = 1;

  constructor(url: string, options: ClientOptions = {}) {
    this.url = url;
    this.options = options;
  }

  as(options: ClientOptions): RawModern {
    return new RawModern(this.url, { ...this.options, ...options });
  }

  /** `message` is the response, which may be the last event of a stream. */
  async send(method: string, params: object = {}, options: RequestOptions = {}) {
    const answer = await exchange(this.url, this.raw(method, params, options));
    return { ...answer, message: answer.json ?? lastMessage(answer) };
  }

  async request(method: string, params?: object, options?: RequestOptions): Promise<RpcMessage> {
    const { status, text, message } = await this.send(method, params, options);
    if (message === undefined) throw new Error(`${method}: HTTP ${status} ${text}`);
    return message;
  }

  call(name: string, given: object = {}, more: object = {}, options?: RequestOptions): Promise<RpcMessage> {
    return this.request('tools/call', { name, arguments: given, ...more }, options);
  }

  async callText(name: string, given?: object, more?: object): Promise<string> {
    const { result = {}, error } = await this.call(name, given, more);
    if (error !== undefined) throw new Error(error.message);
    return (result.content as { text: string }[])[0]!.text;
  }

  async toolNames(): Promise<string[]> {
    const { result = {} } = await this.request('tools/list');
    return (result.tools as { name: string }[]).map(({ name }) => name);
  }

  begin(method: string, params: object, options: RequestOptions = {}): PendingRequest {
    const { headers, body } = this.raw(method, params, options);
    const openRequest = this.url.startsWith('https:') ? openSecure : openPlain;
    const request = openRequest(this.url, { method: 'POST', headers, agent: false });
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', resolve);
      request.on('error', reject);
    });
    response.catch(() => {});
    request.end(body);
    return { response, close: () => void request.destroy() };
  }

  async stream(method: string, params: object, options?: RequestOptions): Promise<EventStream> {
    const response = await this.begin(method, params, options).response;
    if (!response.headers['content-type']?.startsWith('text/event-stream'))
      throw new Error(`${method}: HTTP ${response.statusCode} is no stream`);
    return new EventStream(response);
  }

  /** Resolves when the subscription is acknowledged. */
  async listen(notifications: object, id?: unknown): Promise<Listen> {
    const stream = await this.stream('subscriptions/listen', { notifications }, { id });
    const { params = {} } = await stream.message(
      ({ method }) => method === 'notifications/subscriptions/acknowledged',
    );
    return { stream, honoured: params.notifications as object, meta: params._meta as object };
  }

  raw(method: string, params: object = {}, { id, meta, headers }: RequestOptions = {}) {
    const { name = 'raw', capabilities = {}, headers: own } = this.options;
    const { name: itemName, uri, taskId } = params as Record<string, unknown>;
    const named = itemName ?? uri ?? taskId;
    const all = {
      'content-type': 'application/json',
      accept: bothTypes,
      'mcp-protocol-version': modernVersion,
      'mcp-method': method,
      ...(named !== undefined && { 'mcp-name': String(named) }),
      ...own,
      ...headers,
    };
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': modernVersion,
      'io.modelcontextprotocol/clientInfo': { name, version: '1' },
      'io.modelcontextprotocol/clientCapabilities': capabilities,
      ...meta,
    };
    return {
      headers: Object.fromEntries(
        Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
      ),
      body: JSON.stringify({ jsonrpc: '2.0', id: id ?? this.nextId++, method, params: { ...params, _meta } }),
    };
  }
}

function lastMessage({ text }: RawAnswer): RpcMessage | undefined {
  const line = text.split('\n').findLast((each) => each.startsWith('data: {'));
  return line === undefined ? undefined : (JSON.parse(line.slice('data: '.length)) as RpcMessage);
}
