import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { SwitchboardError, stopping } from '../../errors.ts';
import type { Access } from '../../identity/access.ts';
import type { Sender } from '../../identity/principal.ts';
import type { Gateway } from '../gateway.ts';
import { StreamableEndpoint, type StreamableSettings } from '../legacy/http.ts';
import { LegacySseEndpoint } from '../legacy/sse.ts';
import { ClientConnections, type ConnectionLimits, LEAST_BYTES_PER_SECOND } from './connections.ts';
import { writeFailure, writeJson } from './exchange.ts';
import { Guard } from './guard.ts';

// An `import` would also load its browser APIs: 16 MB.
const { createServer } = process.getBuiltinModule('node:http');

interface Api {
  handle(request: IncomingMessage, response: ServerResponse, sender: Sender): void;
  refuse(
    request: IncomingMessage,
    response: ServerResponse,
    error: unknown,
    headers?: Record<string, string>,
  ): void;
}

export interface HttpSettings extends StreamableSettings, ConnectionLimits {
  host: string;
  port: number;
  localAccess: 'user' | 'everyone';
  allowedOrigins: readonly string[];
}

/** Modern clients repeat the URI of a resource in a header, and URIs can be long. */
const MAX_HEAD_BYTES = 256 * 1024;

/** Health checks need no token, and clients that look for a login get a 404. */
const openPaths = ['/healthz', '/readyz', '/.well-known/'];
const mcpPaths = ['/mcp', '/sse', '/messages'];

const alive = Buffer.from('{"status":"ok"}');

export class HttpFront {
  private readonly server: Server;
  private readonly connections: ClientConnections;
  private readonly streamable: StreamableEndpoint;
  private readonly legacy: LegacySseEndpoint;
  private readonly api: Api;
  private readonly access: Access;
  private readonly guard: Guard;
  private readonly settings: HttpSettings;
  private isStopping = false;

  constructor(gateway: Gateway, api: Api, access: Access, settings: HttpSettings) {
    this.settings = settings;
    this.api = api;
    this.access = access;
    this.guard = new Guard(settings.allowedOrigins);
    this.streamable = new StreamableEndpoint(gateway, settings);
    this.legacy = new LegacySseEndpoint(gateway.legacy, settings.maxMessageBytes);
    this.server = createServer(
      { keepAliveTimeout: 65_000, ...timeLimits(settings), maxHeaderSize: MAX_HEAD_BYTES },
      (request, response) => {
        if (!this.connections.began(response)) return;
        if (this.isStopping) response.shouldKeepAlive = false;
        try {
          this.receive(request, response);
        } catch (error) {
          this.refuse(request, response, error);
        }
      },
    );
    this.connections = new ClientConnections(this.server, settings, access, (response, error) =>
      this.refuse(response.req, response, error),
    );
  }

  /** Resolves with the actual port, because the configured one may be 0. */
  async listen(): Promise<number> {
    const { host, port } = this.settings;
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', (error: NodeJS.ErrnoException) =>
        reject(describeListenError(error, host, port)),
      );
      this.server.listen(port, host, resolve);
    });
    const { port: actual } = this.server.address() as AddressInfo;
    this.guard.listensOn(actual);
    return actual;
  }

  /** Accepts no new connections, and on open ones only requests that may belong to a call. */
  drain(): void {
    this.isStopping = true;
    // The HTTP server's own close() would close idle connections without an error for their clients.
    NetServer.prototype.close.call(this.server);
  }

  /** `flushMs` limits how long responses may take to be flushed. */
  async close(flushMs: number): Promise<void> {
    await this.connections.flushed(flushMs);
    this.connections.close();
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  /** Known connections are routed at once; for others, the user is looked up first. */
  private receive(request: IncomingMessage, response: ServerResponse): void {
    this.guard.check(request);
    if (this.guard.answerBrowser(request, response)) return;
    if (this.access.isGranted(request) || this.isOpen(request)) {
      this.route(request, response, this.access.local);
      return;
    }
    void this.admit(request, response).catch((error: unknown) => this.refuse(request, response, error));
  }

  private async admit(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    const isAdmitted = await this.access.ask(socket);
    if (socket.destroyed) return;
    if (!isAdmitted) throw unauthorized(isForApi(request));
    this.connections.admitted(socket);
    this.route(request, response, this.access.local);
  }

  private isOpen({ url = '/' }: IncomingMessage): boolean {
    if (openPaths.some((path) => url.startsWith(path))) return true;
    return this.settings.localAccess === 'everyone' && mcpPaths.some((path) => url.startsWith(path));
  }

  private refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    const isUnauthorized = error instanceof SwitchboardError && error.code === 'unauthorized';
    const headers = isUnauthorized ? { 'www-authenticate': 'Bearer' } : {};
    if (isForApi(request)) this.api.refuse(request, response, error, headers);
    else writeFailure(response, error, headers);
  }

  private route(request: IncomingMessage, response: ServerResponse, sender: Sender): void {
    const url = request.url ?? '/';
    const query = url.indexOf('?');
    const path = query === -1 ? url : url.slice(0, query);
    if (this.isStopping && path !== '/healthz' && !mayBelongToCall(request)) throw stopping();
    switch (path) {
      case '/mcp':
        this.streamable.handle(request, response, sender, undefined);
        return;
      case '/sse':
        if (takes(request, response, 'GET')) this.legacy.listen(request, response, sender);
        return;
      case '/messages':
        if (!takes(request, response, 'POST')) return;
        this.legacy.post(
          request,
          response,
          sender,
          new URLSearchParams(url.slice(query + 1)).get('sessionId'),
        );
        return;
      case '/healthz':
      case '/readyz':
        if (takes(request, response, 'GET', 'HEAD')) writeJson(response, [alive]);
        return;
      default:
        if (path.startsWith('/api/')) this.api.handle(request, response, sender);
        else if (path.startsWith('/mcp/')) this.streamable.handle(request, response, sender, projectIn(path));
        else
          throw new SwitchboardError('not_found', `There is nothing at ${path}. The MCP endpoint is /mcp.`);
    }
  }
}

/** Whether the request may cancel a call or end a session. All others are rejected when they have been read. */
function mayBelongToCall({ method, url = '/' }: IncomingMessage): boolean {
  return (method === 'POST' || method === 'DELETE') && mcpPaths.some((path) => url.startsWith(path));
}

function isForApi({ url = '/' }: IncomingMessage): boolean {
  return url.startsWith('/api/');
}

function unauthorized(isForApi: boolean): SwitchboardError {
  const who = 'Only processes of the user that runs Switchboard have access without a token.';
  const token =
    'Send "Authorization: Bearer <token>" with the token that "switchboard token" prints to that user';
  const setting = isForApi
    ? ''
    : ', or open MCP to all users of this machine with the setting "localAccess": "everyone"';
  return new SwitchboardError('unauthorized', `${who} ${token}${setting}.`);
}

/** The deadline for a whole request, without its response. */
function timeLimits({ slowClientMs, maxMessageBytes }: HttpSettings) {
  // A part of a body that is too large is read too.
  const bodyMs = (2 * maxMessageBytes * 1_000) / LEAST_BYTES_PER_SECOND;
  return {
    headersTimeout: slowClientMs,
    requestTimeout: slowClientMs + Math.ceil(bodyMs),
    connectionsCheckingInterval: Math.ceil(slowClientMs / 2),
  };
}

/** The project of /mcp/<project>, with or without a trailing slash. */
function projectIn(path: string): string | undefined {
  try {
    return decodeURIComponent(path.slice('/mcp/'.length).replace(/\/$/, '')) || undefined;
  } catch {
    throw new SwitchboardError('not_found', `There is nothing at ${path}.`);
  }
}

function takes({ method = '' }: IncomingMessage, response: ServerResponse, ...methods: string[]): boolean {
  if (methods.includes(method)) return true;
  const allow = methods.join(', ');
  writeFailure(response, new SwitchboardError('method_not_allowed', `Use ${allow} here.`), { allow });
  return false;
}

function describeListenError(error: NodeJS.ErrnoException, host: string, port: number): SwitchboardError {
  const why =
    error.code === 'EADDRINUSE'
      ? `port ${port} on ${host} is in use; is Switchboard running already? Choose another with --port`
      : `cannot listen on ${host}:${port}: ${error.message}`;
  return new SwitchboardError('invalid_config', why, { cause: error });
}
