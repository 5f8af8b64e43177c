import { type IncomingMessage, request as openRequest } from 'node:http';
import { bothTypes, EventStream, exchange, type RawAnswer, type RpcMessage } from '../helpers/raw-http.ts';

export const modernVersion = '2026-07-28';
const prefix = 'io.modelcontextprotocol/';

const nameKeys: Record<string, string> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

/** As whom a client comes. */
interface Appearance {
  name?: string;
  capabilities?: object;
  headers?: Record<string, string>;
}

interface StatelessRequest {
  method: string;
  params?: Record<string, unknown>;
  id?: unknown;
  /** More of `_meta`; undefined leaves a key out. */
  meta?: Record<string, unknown>;
  /** More headers; undefined leaves one out. */
  headers?: Record<string, string | undefined>;
}

/** A request that waits for its answer. */
interface PendingRequest {
  response: Promise<IncomingMessage>;
  /** Closes the connection, as clients of the modern era cancel. */
  close(): void;
}

/** A client of protocol 2026-07-28 that does only what it is told to. */
export class StatelessClient {
  readonly url: string;
  private readonly appearance: Appearance;
  private nextId = 1;

  constructor(url: string, appearance: Appearance = {}) {
    this.url = url;
    this.appearance = appearance;
  }

  as(appearance: Appearance): StatelessClient {
    return new StatelessClient(this.url, { ...this.appearance, ...appearance });
  }

  send(request: StatelessRequest): Promise<RawAnswer> {
    return exchange(this.url, this.raw(request));
  }

  /** The answer, also where it comes as the last event of a stream. */
  async ask(request: StatelessRequest): Promise<RpcMessage> {
    const answer = await this.send(request);
    if (answer.json !== undefined) return answer.json;
    const line = answer.text.split('\n').findLast((text) => text.startsWith('data: {'));
    if (line === undefined) throw new Error(`${request.method}: HTTP ${answer.status} ${answer.text}`);
    return JSON.parse(line.slice('data: '.length)) as RpcMessage;
  }

  call(name: string, given: object = {}, more: Record<string, unknown> = {}): Promise<RpcMessage> {
    return this.ask({ method: 'tools/call', params: { name, arguments: given, ...more } });
  }

  /** Sends a request and does not wait for its answer. */
  begin(request: StatelessRequest): PendingRequest {
    const { headers, body } = this.raw(request);
    const sent = openRequest(this.url, { method: 'POST', headers, agent: false });
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('response', resolve);
      sent.on('error', reject);
    });
    response.catch(() => {});
    sent.end(body);
    return { response, close: () => void sent.destroy() };
  }

  /** Sends a request whose answer is to be a stream of events. */
  async stream(request: StatelessRequest): Promise<EventStream> {
    return new EventStream(await this.begin(request).response);
  }

  /** Hears of changes from now on. */
  async listen(notifications: object, id?: unknown): Promise<EventStream> {
    const stream = await this.stream({ method: 'subscriptions/listen', params: { notifications }, id });
    await stream.message(({ method }) => method === 'notifications/subscriptions/acknowledged');
    return stream;
  }

  raw({ method, params = {}, id, meta = {}, headers = {} }: StatelessRequest) {
    const { name = 'raw', capabilities = {}, headers: own } = this.appearance;
    const nameKey = nameKeys[method];
    const all = {
      'content-type': 'application/json',
      accept: bothTypes,
      'mcp-protocol-version': modernVersion,
      'mcp-method': method,
      ...(nameKey === undefined ? {} : { 'mcp-name': String(params[nameKey]) }),
      ...own,
      ...headers,
    };
    const described = {
      [`${prefix}protocolVersion`]: modernVersion,
      [`${prefix}clientInfo`]: { name, version: '1' },
      [`${prefix}clientCapabilities`]: capabilities,
    };
    return {
      headers: Object.fromEntries(
        Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
      ),
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: id ?? this.nextId++,
        method,
        params: { ...params, _meta: { ...described, ...meta } },
      }),
    };
  }
}
