import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { freePort } from '../helpers/free-port.ts';
import { answerJson, openEvents, writeEvent } from '../helpers/http-peer.ts';
import { Inbox } from '../helpers/inbox.ts';
import type { RpcMessage } from '../helpers/raw-http.ts';

const subscriptionKey = 'io.modelcontextprotocol/subscriptionId';

interface Filter {
  toolsListChanged?: boolean;
  resourceSubscriptions?: string[];
}

export class Listen {
  readonly filter: Filter;
  readonly closed: Promise<void>;
  isOpen = true;
  private readonly id: unknown;
  private readonly response: ServerResponse;

  constructor({ id, params }: RpcMessage, response: ServerResponse) {
    this.id = id;
    this.filter = params?.notifications as Filter;
    this.response = response;
    this.closed = new Promise((resolve) =>
      response.once('close', () => {
        this.isOpen = false;
        resolve();
      }),
    );
  }

  acknowledge(): void {
    openEvents(this.response);
    this.tell('notifications/subscriptions/acknowledged', { notifications: this.filter });
  }

  refuse(): void {
    answerJson(this.response, { id: this.id, error: { code: -32602, message: 'Not that' } });
  }

  tell(method: string, params: object = {}): void {
    const all = { ...params, _meta: { [subscriptionKey]: this.id } };
    writeEvent(this.response, {}, { method, params: all });
  }

  end(): void {
    this.response.end();
  }
}

/** A modern HTTP server that the test starts and stops, and whose subscriptions it answers. */
export class ListenedServer implements AsyncDisposable {
  readonly listens = new Inbox<Listen>();
  tools = ['greet'];
  private server: Server | undefined;
  private port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  async start(): Promise<void> {
    this.server = createServer(async (request, response) => {
      const message = (await json(request)) as RpcMessage;
      if (message.method === 'subscriptions/listen') this.listens.add(new Listen(message, response));
      else answerJson(response, { id: message.id, result: this.resultOf(message) });
    });
    if (this.port === 0) this.port = await freePort();
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  async stop(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (server === undefined) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }

  /** Counted from 1. */
  async resourceListen(number: number): Promise<Listen> {
    const listens = await this.listens.several(number, ({ filter }) => 'resourceSubscriptions' in filter);
    return listens[number - 1]!;
  }

  async listListen(number: number): Promise<Listen> {
    const listens = await this.listens.several(number, ({ filter }) => filter.toolsListChanged === true);
    return listens[number - 1]!;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  private resultOf({ method }: RpcMessage): object {
    const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'public' };
    switch (method) {
      case 'server/discover': {
        const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } };
        return { ...complete, supportedVersions: ['2026-07-28'], capabilities };
      }
      case 'tools/list':
        return { ...complete, tools: this.tools.map((name) => ({ name, inputSchema: { type: 'object' } })) };
      case 'resources/list':
        return {
          ...complete,
          resources: ['a', 'b', 'c'].map((name) => ({ uri: `test://${name}`, name })),
        };
      case 'resources/templates/list':
        return { ...complete, resourceTemplates: [] };
      default:
        return { resultType: 'complete', content: [{ type: 'text', text: 'hello' }] };
    }
  }
}
