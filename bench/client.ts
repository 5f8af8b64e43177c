/** Speaks to one variant: opens sessions, writes requests, and checks that an answer is the one that was asked for. */
import { isDeepStrictEqual } from 'node:util';
import { type Answer, HttpConnection, headerOf } from './http-connection.ts';
import { type PayloadName, payloadJson, toolOfPayload } from './payloads.ts';

const PROTOCOL_VERSION = '2025-11-25';
/** Ids have a fixed width, so that requests and answers of one kind have one length. */
const FIRST_ID = 1_000_000_000;
/** How much the length of an answer may vary: event ids and timestamps around it. */
const LENGTH_TOLERANCE = 48;

/** Where a variant listens. mcp-hub's calls go over its own REST interface, without sessions and ids. */
export interface Target {
  variant: string;
  port: number;
  path: string;
  protocol: 'mcp' | 'mcp-hub';
}

class WrongAnswer extends Error {
  constructor(target: Target, problem: string, answer: Answer) {
    super(
      `${target.variant}: ${problem} (status ${answer.status}, ${answer.bodyBytes} bytes: ${answer.start.slice(0, 200)})`,
    );
  }
}

/** One kind of request, ready to be sent many times. */
export interface Exchange {
  request(id: number): string;
  /** Throws a WrongAnswer. */
  check(answer: Answer, id: number): void;
}

export class Client {
  readonly target: Target;
  readonly #sessionHeaders: string;
  #nextId = FIRST_ID;

  private constructor(target: Target, sessionHeaders: string) {
    this.target = target;
    this.#sessionHeaders = sessionHeaders;
  }

  static async open(target: Target): Promise<Client> {
    if (target.protocol === 'mcp-hub') return new Client(target, '');
    const connection = await HttpConnection.open(target.port);
    try {
      const sessionHeaders = await shakeHands(target, connection);
      return new Client(target, sessionHeaders);
    } finally {
      connection.destroy();
    }
  }

  nextId(): number {
    return this.#nextId++;
  }

  /** Calls a tool once, compares the whole answer, and gives the exchange that repeats it. */
  async prepareCall(payload: PayloadName): Promise<Exchange> {
    const expected = JSON.parse(payloadJson(payload)) as Record<string, unknown>;
    const name = toolOfPayload[payload];
    const request =
      this.target.protocol === 'mcp-hub'
        ? () => this.#post('/api/servers/tools', `{"server_name":"echo","tool":"${name}","arguments":{}}`)
        : (id: number) => this.#rpc(id, 'tools/call', `{"name":"${name}","arguments":{"query":"all"}}`);
    return this.#prepare(request, (result) =>
      Object.keys(expected).every((key) => isDeepStrictEqual(result[key], expected[key])),
    );
  }

  async prepareList(toolCount: number): Promise<Exchange> {
    const request = (id: number) => this.#rpc(id, 'tools/list', '{}');
    return this.#prepare(
      request,
      (result) => Array.isArray(result.tools) && result.tools.length === toolCount,
    );
  }

  /** Lists the tools once, over whatever interface the variant has; throws until all of them are there. */
  async list(toolCount: number): Promise<string> {
    const connection = await HttpConnection.open(this.target.port);
    try {
      const id = this.nextId();
      if (this.target.protocol === 'mcp-hub') {
        const answer = await connection.exchange(this.#post('/api/servers/info', '{"server_name":"echo"}'));
        const found = answer.status === 200 ? (answer.body?.match(/"inputSchema"/g)?.length ?? 0) : 0;
        if (found < toolCount) throw new WrongAnswer(this.target, 'not all tools are there', answer);
        return answer.body ?? '';
      }
      const answer = await connection.exchange(this.#rpc(id, 'tools/list', '{}'));
      const result = resultOf(this.target, answer, id);
      if (!Array.isArray(result.tools) || result.tools.length !== toolCount) {
        throw new WrongAnswer(this.target, `expected ${toolCount} tools`, answer);
      }
      return JSON.stringify(result);
    } finally {
      connection.destroy();
    }
  }

  /** Opens the stream on which the server may speak first; it stays open until it is destroyed. */
  async openStream(): Promise<HttpConnection> {
    const connection = await HttpConnection.open(this.target.port);
    const answer = await connection.openStream(
      `GET ${this.target.path} HTTP/1.1\r\nHost: 127.0.0.1:${this.target.port}\r\nAccept: text/event-stream\r\n${this.#sessionHeaders}\r\n`,
    );
    if (answer.status !== 200) throw new WrongAnswer(this.target, 'no stream', answer);
    return connection;
  }

  async close(): Promise<void> {
    const connection = await HttpConnection.open(this.target.port);
    await connection.exchange(
      `DELETE ${this.target.path} HTTP/1.1\r\nHost: 127.0.0.1:${this.target.port}\r\n${this.#sessionHeaders}\r\n`,
    );
    connection.destroy();
  }

  async #prepare(
    request: (id: number) => string,
    isExpected: (result: Record<string, unknown>) => boolean,
  ): Promise<Exchange> {
    const { target } = this;
    const connection = await HttpConnection.open(target.port);
    const id = this.nextId();
    const first = await connection.exchange(request(id));
    connection.destroy();
    if (!isExpected(resultOf(target, first, id)))
      throw new WrongAnswer(target, 'a result is not what was sent', first);
    const withId = target.protocol === 'mcp';
    return {
      request,
      check(answer, askedId) {
        if (answer.status !== 200) throw new WrongAnswer(target, 'a call failed', answer);
        if (Math.abs(answer.bodyBytes - first.bodyBytes) > LENGTH_TOLERANCE) {
          throw new WrongAnswer(target, `expected about ${first.bodyBytes} bytes`, answer);
        }
        if (withId && !hasId(answer.start, askedId) && !hasId(answer.end, askedId)) {
          throw new WrongAnswer(target, `expected the answer to ${askedId}`, answer);
        }
        if (!answer.start.includes('"result":')) throw new WrongAnswer(target, 'a call failed', answer);
      },
    };
  }

  #rpc(id: number, method: string, params: string): string {
    return this.#post(
      this.target.path,
      `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`,
      this.#sessionHeaders,
    );
  }

  #post(path: string, body: string, extraHeaders = ''): string {
    return postRequest(this.target.port, path, body, extraHeaders);
  }
}

async function shakeHands(target: Target, connection: HttpConnection): Promise<string> {
  const params = {
    protocolVersion: PROTOCOL_VERSION,
    capabilities: {},
    clientInfo: { name: 'bench', version: '1.0.0' },
  };
  const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
  const answer = await connection.exchange(postRequest(target.port, target.path, JSON.stringify(initialize)));
  const result = resultOf(target, answer, 1);
  const sessionId = headerOf(answer.head, 'mcp-session-id');
  const sessionHeaders =
    (sessionId === undefined ? '' : `Mcp-Session-Id: ${sessionId}\r\n`) +
    `MCP-Protocol-Version: ${String(result.protocolVersion)}\r\n`;
  const initialized = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const accepted = await connection.exchange(
    postRequest(target.port, target.path, initialized, sessionHeaders),
  );
  if (accepted.status !== 202) throw new WrongAnswer(target, 'the notification was refused', accepted);
  return sessionHeaders;
}

function postRequest(port: number, path: string, body: string, extraHeaders = ''): string {
  return (
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
    `Accept: application/json, text/event-stream\r\n${extraHeaders}Content-Length: ${body.length}\r\n\r\n${body}`
  );
}

function hasId(text: string, id: number): boolean {
  const found = text.indexOf(`"id":${id}`);
  const after = text[found + 5 + String(id).length];
  return found >= 0 && (after === ',' || after === '}');
}

/** The result in a whole answer, sent as JSON or as an event stream. */
function resultOf(target: Target, answer: Answer, id: number): Record<string, unknown> {
  if (answer.status !== 200 || answer.body === undefined)
    throw new WrongAnswer(target, 'a request failed', answer);
  const isStream = headerOf(answer.head, 'content-type')?.startsWith('text/event-stream') ?? false;
  const json = isStream ? lastEventData(answer.body) : answer.body;
  const message = parseObject(json);
  if (message === undefined) throw new WrongAnswer(target, 'an answer is not a JSON object', answer);
  if (target.protocol === 'mcp' && message.id !== id)
    throw new WrongAnswer(target, `expected id ${id}`, answer);
  if (!isObject(message.result)) throw new WrongAnswer(target, 'there is no result', answer);
  return message.result;
}

function lastEventData(stream: string): string {
  const lines = stream.split(/\r?\n/).filter((line) => line.startsWith('data:') && line.length > 6);
  return lines.at(-1)?.slice(5) ?? '';
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
