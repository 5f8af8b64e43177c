import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { describeTools, echoTools, type Tool } from '../fixtures/kit.ts';
import { freePort } from './free-port.ts';
import { type Endpoint, type Relay, SseEndpoint, StreamableEndpoint } from './http-endpoints.ts';
import type { Identity } from './identity.ts';
import { Inbox } from './inbox.ts';
import type { RpcMessage } from './raw-http.ts';

interface BackendOptions {
  /** Streamable HTTP, or HTTP+SSE of 2024-11-05. */
  transport?: 'http' | 'sse';
  answers?: 'json' | 'events';
  /** The status for unknown sessions over streamable HTTP. */
  unknownSession?: 400 | 404;
  /** The file in which `count` records executions. */
  ledger?: string;
  tools?: Record<string, Tool>;
  /** Enables TLS. */
  identity?: Identity;
}

type Fault =
  | { kind: 'none' }
  | { kind: 'mute' }
  | { kind: 'status'; status: number; headers: Record<string, string>; until?: number };

/** An MCP server over HTTP with `echo`, `whoami`, `count` and `hang` that fails on command. */
export class HttpBackend implements AsyncDisposable {
  readonly name: string;
  /** The methods of the requests received while silent. */
  readonly ignored = new Inbox<string | undefined>();
  refusals = 0;
  private readonly tools: Record<string, Tool>;
  private readonly endpoint: Endpoint;
  private readonly server: Server;
  private readonly executions = new Map<string, number>();
  private readonly scheme: string;
  private port = 0;
  private fault: Fault = { kind: 'none' };

  private constructor(name: string, options: BackendOptions) {
    const { transport = 'http', answers = 'json', unknownSession = 404, ledger, tools, identity } = options;
    this.name = name;
    this.tools = {
      ...echoTools({ name, pid: process.pid }, ledger),
      hang: () => new Promise<never>(() => {}),
      ...tools,
    };
    const relay: Relay = (message, notify) => this.answer(message, notify);
    this.endpoint =
      transport === 'sse'
        ? new SseEndpoint(relay)
        : new StreamableEndpoint(relay, answers === 'events', unknownSession);
    const serve = (request: IncomingMessage, response: ServerResponse) => void this.serve(request, response);
    this.scheme = identity === undefined ? 'http' : 'https';
    this.server = identity === undefined ? createServer(serve) : createSecureServer(identity, serve);
  }

  static async start(name: string, options: BackendOptions = {}): Promise<HttpBackend> {
    const backend = new HttpBackend(name, options);
    await backend.comeBack();
    return backend;
  }

  get url(): string {
    return `${this.scheme}://127.0.0.1:${this.port}${this.endpoint.path}`;
  }

  executionsOf(textOrKey: string): number {
    return this.executions.get(textOrKey) ?? 0;
  }

  /** Open streams stay. */
  forgetSessions(): void {
    this.endpoint.forgetSessions();
  }

  /** Cuts the standing streams and the responses that are streams. */
  dropStreams(): void {
    this.endpoint.dropStreams();
  }

  /** Like a killed process: resets connections, drops sessions, refuses new connections. */
  async goAway(): Promise<void> {
    if (!this.server.listening) return;
    this.endpoint.forgetSessions();
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  /** Listens again on the same port. */
  async comeBack(): Promise<void> {
    if (this.port === 0) this.port = await freePort();
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  /** Accepts requests without a response, until `behave`. */
  fallSilent(): void {
    this.fault = { kind: 'mute' };
  }

  /** Rejects every request, until `behave`. */
  failWith(status: number, headers: Record<string, string> = {}): void {
    this.fault = { kind: 'status', status, headers };
  }

  /** Rejects only the next `count` calls. */
  failCalls(count: number, status: number): void {
    this.fault = { kind: 'status', status, headers: {}, until: this.refusals + count };
  }

  behave(): void {
    this.fault = { kind: 'none' };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.goAway();
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { fault } = this;
    request.on('error', () => {});
    response.on('error', () => {});
    try {
      const text = (await buffer(request)).toString();
      const message = text === '' ? undefined : (JSON.parse(text) as RpcMessage);
      if (fault.kind === 'mute') {
        this.ignored.add(message?.method);
        return;
      }
      if (fault.kind === 'status') {
        if (message?.method === 'tools/call') this.refusals++;
        if (this.refusals === fault.until) this.behave();
        response.writeHead(fault.status, fault.headers).end('told to fail');
        return;
      }
      await this.endpoint.handle(request, response, message);
    } catch {
      // The connection broke while the request was read.
      response.destroy();
    }
  }

  private async answer(
    { id, method, params = {} }: RpcMessage,
    notify: (message: object) => void,
  ): Promise<object> {
    switch (method) {
      case 'initialize':
        return {
          id,
          result: {
            protocolVersion: params.protocolVersion,
            capabilities: { tools: {} },
            serverInfo: { name: this.name, version: '1.0.0' },
          },
        };
      case 'tools/list':
        return { id, result: { tools: describeTools(this.tools) } };
      case 'tools/call':
        return this.execute(id as number, params, notify);
      default:
        return { id, result: {} };
    }
  }

  private async execute(
    id: number,
    params: Record<string, unknown>,
    notify: (message: object) => void,
  ): Promise<object> {
    const { arguments: given = {}, _meta: meta } = params as {
      arguments?: Record<string, unknown>;
      _meta?: { progressToken?: unknown };
    };
    const tool = this.tools[String(params.name)];
    if (tool === undefined) return { id, error: { code: -32602, message: `no such tool: ${params.name}` } };
    const textOrKey = String(given.text ?? given.key);
    this.executions.set(textOrKey, this.executionsOf(textOrKey) + 1);
    const progressToken = meta?.progressToken;
    const progress = (message: string) => {
      if (progressToken === undefined) return;
      notify({ method: 'notifications/progress', params: { progressToken, progress: 1, message } });
    };
    return { id, result: await tool(given, { id, progress }) };
  }
}
