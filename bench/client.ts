/** Client of one variant: opens sessions, sends requests, and checks the responses. */
import { isDeepStrictEqual } from 'node:util';
import { openSession } from './greeting.ts';
import { type Answer, HttpConnection } from './http-connection.ts';
import { type PayloadName, payloadJson, toolOfPayload } from './payloads.ts';
import {
  bareRequest,
  modernRequest,
  type Params,
  postRequest,
  type RequestWriter,
  rpcRequest,
  type Target,
} from './requests.ts';
import { hasId, resultOf, WrongAnswer } from './results.ts';

/** Ids have a fixed width, so that all requests and responses of one kind have the same length. */
const FIRST_ID = 1_000_000_000;
/** How much the length of a response may vary, because of event ids and timestamps. */
const LENGTH_TOLERANCE = 48;

/** One kind of request, ready to be sent many times. */
export interface Exchange {
  request: RequestWriter;
  /** Throws a WrongAnswer. */
  check(answer: Answer, id: number): void;
}

export class Client {
  readonly target: Target;
  /** Empty in the modern era, which has no sessions. */
  readonly #sessionHeaders: string;
  #nextId = FIRST_ID;

  private constructor(target: Target, sessionHeaders: string) {
    this.target = target;
    this.#sessionHeaders = sessionHeaders;
  }

  static async open(target: Target): Promise<Client> {
    return new Client(target, target.protocol === 'legacy' ? await openSession(target) : '');
  }

  nextId(): number {
    return this.#nextId++;
  }

  /** Calls a tool once, checks the whole response, and returns the exchange that repeats it. */
  async prepareCall(payload: PayloadName): Promise<Exchange> {
    const expected = JSON.parse(payloadJson(payload)) as Record<string, unknown>;
    const name = toolOfPayload[payload];
    const request =
      this.target.protocol === 'mcp-hub'
        ? () => this.#hubRequest('tools', `{"server_name":"echo","tool":"${name}","arguments":{}}`)
        : this.#request('tools/call', { name, arguments: { query: 'all' } });
    return this.#prepare(request, (result) =>
      Object.keys(expected).every((key) => isDeepStrictEqual(result[key], expected[key])),
    );
  }

  async prepareList(toolCount: number): Promise<Exchange> {
    return this.#prepare(
      this.#request('tools/list', {}),
      (result) => Array.isArray(result.tools) && result.tools.length === toolCount,
    );
  }

  /** Lists the tools once, over the interface of the variant. Throws if some are missing. */
  async list(toolCount: number): Promise<string> {
    const connection = await HttpConnection.open(this.target.port);
    try {
      const id = this.nextId();
      if (this.target.protocol === 'mcp-hub') {
        const answer = await connection.exchange(this.#hubRequest('info', '{"server_name":"echo"}'));
        const found = answer.status === 200 ? (answer.body?.match(/"inputSchema"/g)?.length ?? 0) : 0;
        if (found < toolCount) throw new WrongAnswer(this.target, 'some tools are missing', answer);
        return answer.body ?? '';
      }
      const answer = await connection.exchange(this.#request('tools/list', {})(id));
      const result = resultOf(this.target, answer, id);
      if (!Array.isArray(result.tools) || result.tools.length !== toolCount) {
        throw new WrongAnswer(this.target, `expected ${toolCount} tools`, answer);
      }
      return JSON.stringify(result);
    } finally {
      connection.destroy();
    }
  }

  /** Opens the standing stream of the session; it stays open until it is destroyed. */
  async openStream(): Promise<HttpConnection> {
    const connection = await HttpConnection.open(this.target.port);
    const answer = await connection.openStream(bareRequest(this.target, 'GET', this.#sessionHeaders));
    if (answer.status !== 200) throw new WrongAnswer(this.target, 'no stream', answer);
    return connection;
  }

  async close(): Promise<void> {
    const connection = await HttpConnection.open(this.target.port);
    await connection.exchange(bareRequest(this.target, 'DELETE', this.#sessionHeaders));
    connection.destroy();
  }

  async #prepare(
    request: RequestWriter,
    isExpected: (result: Record<string, unknown>) => boolean,
  ): Promise<Exchange> {
    const { target } = this;
    const connection = await HttpConnection.open(target.port);
    const id = this.nextId();
    const first = await connection.exchange(request(id));
    connection.destroy();
    if (!isExpected(resultOf(target, first, id))) throw new WrongAnswer(target, 'unexpected result', first);
    const withId = target.protocol !== 'mcp-hub';
    return {
      request,
      check(answer, askedId) {
        if (answer.status !== 200) throw new WrongAnswer(target, 'a call failed', answer);
        if (Math.abs(answer.bodyBytes - first.bodyBytes) > LENGTH_TOLERANCE) {
          throw new WrongAnswer(target, `expected about ${first.bodyBytes} bytes`, answer);
        }
        if (withId && !hasId(answer.start, askedId) && !hasId(answer.end, askedId)) {
          throw new WrongAnswer(target, `expected the response to ${askedId}`, answer);
        }
        if (!answer.start.includes('"result":')) throw new WrongAnswer(target, 'a call failed', answer);
      },
    };
  }

  #request(method: string, params: Params): RequestWriter {
    return this.target.protocol === 'modern'
      ? modernRequest(this.target, method, params)
      : rpcRequest(this.target, this.#sessionHeaders, method, params);
  }

  #hubRequest(what: 'tools' | 'info', body: string): string {
    return postRequest(this.target, `/api/servers/${what}`, body);
  }
}
