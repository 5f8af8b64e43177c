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
import { type Certificate, createHttpServer } from './tls.ts';

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
  allowedOrigins: readonly string[];
  /** The canonical address, with authentication. */
  publicUrl?: string | undefined;
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
  private readonly certificate: Certificate | undefined;
  private isStopping = false;

  constructor(gateway: Gateway, api: Api, access: Access, settings: HttpSettings, certificate?: Certificate) {
    this.settings = settings;
    this.certificate = certificate;
    this.api = api;
    this.access = access;
    this.guard = new Guard(settings);
    this.streamable = new StreamableEndpoint(gateway, settings);
    this.legacy = new LegacySseEndpoint(gateway.legacy, settings.maxMessageBytes);
    const limits = { keepAliveTimeout: 65_000, ...timeLimits(settings), maxHeaderSize: MAX_HEAD_BYTES };
    this.server = createHttpServer(limits, certificate, (request, response) => {
      if (!this.connections.began(response)) return;
      if (this.isStopping) response.shouldKeepAlive = false;
      try {
        this.receive(request, response);
      } catch (error) {
        this.refuse(request, response, error);
      }
    });
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
    this.guard.listensOn(actual, this.certificate === undefined ? 'http' : 'https');
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
    this.certificate?.close();
    await this.connections.flushed(flushMs);
    this.connections.close();
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  /** Known connections are routed at once; for others, the user is looked up first. */
  private receive(request: IncomingMessage, response: ServerResponse): void {
    const needsNoSender = isOpen(request);
    if (needsNoSender && this.access.vouches) {
      this.respondOpenly(request, response);
      return;
    }
    this.guard.check(request);
    if (this.guard.answerBrowser(request, response)) return;
    if (needsNoSender) {
      this.respondOpenly(request, response);
      return;
    }
    const sender = this.access.identify(request);
    if (sender instanceof Promise)
      void this.admit(request, response, sender).catch((error: unknown) =>
        this.refuse(request, response, error),
      );
    else {
      if (this.access.vouches) this.connections.admitted(request.socket);
      this.route(request, response, sender);
    }
  }

  private async admit(
    request: IncomingMessage,
    response: ServerResponse,
    identified: Promise<Sender>,
  ): Promise<void> {
    const sender = await identified;
    if (request.socket.destroyed) return;
    this.connections.admitted(request.socket);
    this.route(request, response, sender);
  }

  /** Without a sender. */
  private respondOpenly(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request);
    if (path !== '/healthz' && path !== '/readyz') throw nothingAt(path);
    if (this.isStopping && path !== '/healthz') throw stopping();
    if (takes(request, response, 'GET', 'HEAD')) writeJson(response, [alive]);
  }

  private refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    const isUnauthorized = error instanceof SwitchboardError && error.code === 'unauthorized';
    const headers = isUnauthorized ? { 'www-authenticate': 'Bearer' } : {};
    if (isForApi(request)) this.api.refuse(request, response, error, headers);
    else writeFailure(response, error, headers);
  }

  private route(request: IncomingMessage, response: ServerResponse, sender: Sender): void {
    const path = pathOf(request);
    if (this.isStopping && !mayBelongToCall(request)) throw stopping();
    switch (path) {
      case '/mcp':
        this.streamable.handle(request, response, sender, undefined);
        return;
      case '/sse':
        if (takes(request, response, 'GET')) this.legacy.listen(request, response, sender);
        return;
      case '/messages':
        if (!takes(request, response, 'POST')) return;
        this.legacy.post(request, response, sender, sessionIdIn(request));
        return;
      default:
        if (path.startsWith('/api/')) this.api.handle(request, response, sender);
        else if (path.startsWith('/mcp/')) this.streamable.handle(request, response, sender, projectIn(path));
        else throw nothingAt(path);
    }
  }
}

function isOpen({ url = '/' }: IncomingMessage): boolean {
  return openPaths.some((path) => url.startsWith(path));
}

function pathOf({ url = '/' }: IncomingMessage): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

function sessionIdIn({ url = '/' }: IncomingMessage): string | null {
  return new URLSearchParams(url.slice(url.indexOf('?') + 1)).get('sessionId');
}

function nothingAt(path: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is nothing at ${path}. The MCP endpoint is /mcp.`);
}

/** Whether the request may cancel a call or end a session. All others are rejected when they have been read. */
function mayBelongToCall({ method, url = '/' }: IncomingMessage): boolean {
  return (method === 'POST' || method === 'DELETE') && mcpPaths.some((path) => url.startsWith(path));
}

function isForApi({ url = '/' }: IncomingMessage): boolean {
  return url.startsWith('/api/');
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
