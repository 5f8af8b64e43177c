import { EventStream, exchange, openExchange, type RawAnswer, type RpcMessage } from './raw-http.ts';

export const bothTypes = 'application/json, text/event-stream';

/** An initialize request. */
export function initialize(
  protocolVersion = '2025-11-25',
  id: unknown = 0,
  capabilities: object = {},
): object {
  const params = { protocolVersion, capabilities, clientInfo: { name: 'raw', version: '1' } };
  return { jsonrpc: '2.0', id, method: 'initialize', params };
}

/** A session over streamable HTTP that does only what it is told to: no retries, no streams of its own. */
export class RawSession {
  readonly url: string;
  readonly id: string;
  readonly version: string;
  private nextId = 1;

  private constructor(url: string, id: string, version: string) {
    this.url = url;
    this.id = id;
    this.version = version;
  }

  static async open(url: string, version = '2025-11-25', capabilities: object = {}): Promise<RawSession> {
    const headers = { 'content-type': 'application/json', accept: bothTypes };
    const answer = await exchange(url, { headers, body: initialize(version, 0, capabilities) });
    if (answer.status !== 200) throw new Error(`initialize: HTTP ${answer.status} ${answer.text}`);
    const session = new RawSession(url, String(answer.headers['mcp-session-id']), version);
    await session.notify('notifications/initialized');
    return session;
  }

  /** What every request of this session carries. */
  headers(more: Record<string, string> = {}): Record<string, string> {
    return {
      'content-type': 'application/json',
      accept: bothTypes,
      'mcp-session-id': this.id,
      'mcp-protocol-version': this.version,
      ...more,
    };
  }

  post(body: unknown, more: Record<string, string> = {}): Promise<RawAnswer> {
    return exchange(this.url, { headers: this.headers(more), body });
  }

  /** Sends a request and gives its answer, also where it comes as a stream. */
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

  /** The text that a tool gives. */
  async callText(name: string, toolArguments: object = {}): Promise<string> {
    const { result = {}, error } = await this.call(name, toolArguments);
    if (error !== undefined) throw new Error(error.message);
    return (result.content as { text: string }[])[0]!.text;
  }

  /** The names in tools/list. */
  async toolNames(): Promise<string[]> {
    const { result = {} } = await this.request('tools/list');
    return (result.tools as { name: string }[]).map(({ name }) => name);
  }

  async notify(method: string, params: object = {}): Promise<RawAnswer> {
    return this.post({ jsonrpc: '2.0', method, params });
  }

  /** Sends a request whose answer is to be a stream of events. */
  async openCall(name: string, toolArguments: object, progressToken: unknown): Promise<EventStream> {
    const params = { name, arguments: toolArguments, _meta: { progressToken } };
    const body = { jsonrpc: '2.0', id: this.nextId++, method: 'tools/call', params };
    return new EventStream(await openExchange(this.url, { headers: this.headers(), body }));
  }

  /** Opens the standing stream, or goes on with the stream of that event. */
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
