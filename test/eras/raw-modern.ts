import { type ClientRequest, type IncomingMessage, request as openRequest } from 'node:http';
import { EventStream, type RpcMessage } from '../helpers/raw-http.ts';

const version = '2026-07-28';
export const subscriptionKey = 'io.modelcontextprotocol/subscriptionId';
export const tasksExtension = 'io.modelcontextprotocol/tasks';

export interface ModernAnswer {
  status: number;
  text: string;
  /** The last message in it: the answer. */
  message: RpcMessage;
}

interface RequestOptions {
  id?: unknown;
  /** What stands in `_meta` beside what every request has there. */
  meta?: object;
  headers?: Record<string, string>;
}

/** A client of the modern era that sends exactly what it is told to. */
export class RawModern {
  private readonly url: string;
  private readonly capabilities: object;
  private readonly headers: Record<string, string>;
  private nextId = 1;

  constructor(url: string, capabilities: object = {}, headers: Record<string, string> = {}) {
    this.url = url;
    this.capabilities = capabilities;
    this.headers = headers;
  }

  async send(method: string, params: object = {}, options: RequestOptions = {}): Promise<ModernAnswer> {
    const response = await this.open(method, params, options);
    const stream = new EventStream(response);
    let text = '';
    response.on('data', (chunk: string) => {
      text += chunk;
    });
    await stream.ended;
    const isEvents = response.headers['content-type']?.startsWith('text/event-stream');
    const message = isEvents ? stream.messages.at(-1) : (JSON.parse(text) as RpcMessage);
    if (message === undefined) throw new Error(`${method}: HTTP ${response.statusCode} ${text}`);
    return { status: response.statusCode!, text, message };
  }

  async request(method: string, params?: object, options?: RequestOptions): Promise<RpcMessage> {
    return (await this.send(method, params, options)).message;
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

  /** A request whose answer is a stream; settles when that is open. */
  async stream(method: string, params: object, options: RequestOptions = {}): Promise<EventStream> {
    const response = await this.open(method, params, options);
    if (!response.headers['content-type']?.startsWith('text/event-stream'))
      throw new Error(`${method}: HTTP ${response.statusCode} is no stream`);
    return new EventStream(response);
  }

  /** A subscription, once it is acknowledged. */
  async listen(notifications: object, id: unknown = this.nextId++): Promise<Listen> {
    const stream = await this.stream('subscriptions/listen', { notifications }, { id });
    const { params = {} } = await stream.message(
      ({ method }) => method === 'notifications/subscriptions/acknowledged',
    );
    return { stream, honoured: params.notifications as object, meta: params._meta as object };
  }

  private open(method: string, params: object, options: RequestOptions): Promise<IncomingMessage> {
    return this.begin(method, params, options).response;
  }

  /** Sends a request. Whoever destroys it hangs up. */
  begin(method: string, params: object, options: RequestOptions = {}): SentRequest {
    const { id = this.nextId++, meta = {}, headers = {} } = options;
    const { name, uri, taskId } = params as Record<string, unknown>;
    const named = name ?? uri ?? taskId;
    const all = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...(typeof named === 'string' && { 'mcp-name': named }),
      ...this.headers,
      ...headers,
    };
    const description = {
      'io.modelcontextprotocol/protocolVersion': version,
      'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': this.capabilities,
    };
    const body = { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...description, ...meta } } };
    const request = openRequest(this.url, { method: 'POST', headers: all, agent: false });
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', resolve);
      request.on('error', reject);
    });
    request.end(JSON.stringify(body));
    return { request, response };
  }
}

interface SentRequest {
  request: ClientRequest;
  response: Promise<IncomingMessage>;
}

export interface Listen {
  stream: EventStream;
  honoured: object;
  meta: object;
}
