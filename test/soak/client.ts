import { Pool } from 'undici';
import { bothTypes, initialize, type RpcMessage } from '../helpers/raw-http.ts';

/** The shared connections of all clients, as behind a proxy; headers identify the sessions. */
export class Connections implements AsyncDisposable {
  readonly pool: Pool;
  readonly path: string;

  constructor(url: string) {
    const { origin, pathname } = new URL(url);
    this.pool = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0 });
    this.path = pathname;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pool.destroy();
  }
}

/** Reports a violation. */
export type Complain = (what: string) => void;

interface Awaited {
  answers: RpcMessage[];
  progressed(): void;
  text: string;
}

/** A session with a standing stream that accounts for every received message. */
export class SoakClient {
  readonly number: number;
  private readonly connections: Connections;
  private readonly complain: Complain;
  private readonly awaited = new Map<number, Awaited>();
  private session = '';
  private nextId = 1;
  private listening: Promise<void> | undefined;
  private isLeaving = false;

  private constructor(number: number, connections: Connections, complain: Complain) {
    this.number = number;
    this.connections = connections;
    this.complain = (what) => complain(`client ${number}: ${what}`);
  }

  static async open(number: number, connections: Connections, complain: Complain): Promise<SoakClient> {
    const client = new SoakClient(number, connections, complain);
    const { headers, body } = await client.post(initialize());
    await body.dump();
    client.session = String(headers['mcp-session-id']);
    await client.notify('notifications/initialized', {});
    await client.listen();
    return client;
  }

  uniqueText(): string {
    return `client-${this.number}/call-${this.nextId}`;
  }

  /** Returns all responses once no more can come. `text` is the expected progress; `cancelOnProgress` cancels at the first one. */
  async request(
    method: string,
    params: object,
    { text = '', cancelOnProgress = false, deadlineMs }: RequestTerms,
  ): Promise<RpcMessage[]> {
    const id = this.nextId++;
    const answers: RpcMessage[] = [];
    let cancelling: Promise<void> | undefined;
    const progressed = () => {
      if (cancelOnProgress) cancelling ??= this.notify('notifications/cancelled', { requestId: id });
    };
    this.awaited.set(id, { answers, progressed, text });
    try {
      // The token is the id, so all clients use the same numbers.
      const meta = text === '' ? {} : { _meta: { progressToken: id } };
      const message = { jsonrpc: '2.0', id, method, params: { ...params, ...meta } };
      const { headers, body } = await this.post(message, AbortSignal.timeout(deadlineMs));
      await this.read(String(headers['content-type']), body);
      await cancelling;
    } finally {
      this.awaited.delete(id);
    }
    return answers;
  }

  async end(): Promise<void> {
    this.isLeaving = true;
    const { body } = await this.connections.pool.request({
      path: this.connections.path,
      method: 'DELETE',
      headers: this.headers(),
    });
    await body.dump();
    await this.listening;
  }

  private async notify(method: string, params: object): Promise<void> {
    const { body } = await this.post({ jsonrpc: '2.0', method, params });
    await body.dump();
  }

  private post(message: object, signal?: AbortSignal) {
    return this.connections.pool.request({
      path: this.connections.path,
      method: 'POST',
      headers: this.headers(),
      body: JSON.stringify(message),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** Settles when the standing stream is open. It has to stay open until the client leaves. */
  private async listen(): Promise<void> {
    const { statusCode, body } = await this.connections.pool.request({
      path: this.connections.path,
      method: 'GET',
      headers: { ...this.headers(), accept: 'text/event-stream' },
    });
    if (statusCode !== 200) this.complain(`its standing stream was refused: HTTP ${statusCode}`);
    this.listening = this.read('text/event-stream', body)
      .then(() => {
        if (!this.isLeaving) this.complain('its standing stream ended');
      })
      .catch((error: Error) => {
        if (!this.isLeaving) this.complain(`its standing stream broke: ${error.message}`);
      });
  }

  private headers(): Record<string, string> {
    const session = this.session === '' ? {} : { 'mcp-session-id': this.session };
    return { 'content-type': 'application/json', accept: bothTypes, ...session };
  }

  private async read(contentType: string, body: AsyncIterable<Buffer>): Promise<void> {
    const decoder = new TextDecoder();
    const isStream = contentType.startsWith('text/event-stream');
    let unread = '';
    for await (const chunk of body) {
      unread += decoder.decode(chunk, { stream: true });
      if (!isStream) continue;
      const events = unread.split('\n\n');
      unread = events.pop()!;
      for (const event of events) for (const data of dataOf(event)) this.receive(data);
    }
    if (!isStream && unread !== '') this.receive(unread);
  }

  private receive(data: string): void {
    for (const [, number] of data.matchAll(/client-(\d+)\//g)) {
      if (Number(number) !== this.number) this.complain(`got what is of client ${number}: ${data}`);
    }
    const message = JSON.parse(data) as RpcMessage;
    if (message.method === undefined) this.answered(message, data);
    else if (message.method === 'notifications/progress') this.progressed(message, data);
    else if (!/^notifications\/.*list_changed$/.test(message.method)) this.complain(`was told ${data}`);
  }

  private answered(message: RpcMessage, data: string): void {
    const awaited = this.awaited.get(message.id as number);
    if (awaited === undefined) this.complain(`got an answer that it does not await (any more): ${data}`);
    else awaited.answers.push(message);
  }

  private progressed({ params = {} }: RpcMessage, data: string): void {
    const awaited = this.awaited.get(params.progressToken as number);
    if (awaited?.text !== params.message) this.complain(`got progress that is not of its call: ${data}`);
    else awaited?.progressed();
  }
}

export interface RequestTerms {
  text?: string;
  cancelOnProgress?: boolean;
  /** A later response counts as missing. */
  deadlineMs: number;
}

function dataOf(event: string): string[] {
  return event
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => line.slice('data: '.length));
}
