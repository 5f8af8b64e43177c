import type { ServerResponse } from 'node:http';
import { HttpPeer, openEvents, type PeerExchange, writeEvent } from '../helpers/http-peer.ts';
import { Inbox } from '../helpers/inbox.ts';
import type { RpcMessage } from '../helpers/raw-http.ts';
import { subscriptionKey } from './raw-modern.ts';

/** The defaults are minimal. */
export interface ModernBehaviour {
  capabilities?: object;
  /** Merged into the discovery result, or its whole text. */
  discovered?: object | string;
  /** By method. */
  lists?: Record<string, () => object>;
  /** The result of any other request: a value, or its text. */
  answer?(request: RpcMessage, exchange: PeerExchange): unknown;
  /** The part of a filter that is acknowledged; all of it by default. */
  honours?(filter: Record<string, unknown>): Record<string, unknown>;
  /** A subscription is acknowledged when this resolves. */
  listening?(filter: Record<string, unknown>): Promise<void>;
}

export class Refusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export interface PeerListen {
  server: string;
  id: unknown;
  filter: Record<string, unknown>;
  response: ServerResponse;
  isOpen: boolean;
}

/** Plays modern HTTP servers, one under each path. */
export class ModernPeer implements AsyncDisposable {
  readonly listens = new Inbox<PeerListen>();
  readonly unlistens = new Inbox<PeerListen>();
  private readonly http: HttpPeer;

  private constructor(http: HttpPeer) {
    this.http = http;
  }

  static async start(servers: Record<string, ModernBehaviour>): Promise<ModernPeer> {
    const quirks = Object.entries(servers).map(([name, behaviour]) => [
      name,
      (exchange: PeerExchange) => peer.serve(name, behaviour, exchange),
    ]);
    const http = await HttpPeer.start(Object.fromEntries(quirks));
    const peer: ModernPeer = new ModernPeer(http);
    return peer;
  }

  url(name: string): string {
    return `${this.http.origin}/${name}`;
  }

  configuration(): Record<string, { url: string }> {
    return this.http.configuration();
  }

  seen(method: string): PeerExchange[] {
    return this.http.exchanges.items.filter(({ message }) => message?.method === method);
  }

  sees(name: string, method: string): Promise<PeerExchange> {
    return this.http.sees(name, ({ message }) => message?.method === method);
  }

  notify(server: string, method: string, params: object = {}): void {
    for (const listen of this.listens.items) {
      if (listen.server !== server || !listen.isOpen || !isWanted(listen.filter, method, params)) continue;
      const told = { ...params, _meta: { [subscriptionKey]: listen.id } };
      writeEvent(listen.response, {}, { method, params: told });
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.http[Symbol.asyncDispose]();
  }

  private serve(name: string, behaviour: ModernBehaviour, exchange: PeerExchange): boolean {
    const { message, response, method } = exchange;
    if (method !== 'POST' || message === undefined) response.writeHead(405).end();
    else if (message.id === undefined) response.writeHead(202).end();
    else if (message.method === 'subscriptions/listen') void this.listen(name, behaviour, message, response);
    else answer(behaviour, message, exchange);
    return true;
  }

  private async listen(
    server: string,
    { honours = (filter) => filter, listening }: ModernBehaviour,
    { id, params = {} }: RpcMessage,
    response: ServerResponse,
  ): Promise<void> {
    const filter = honours(params.notifications as Record<string, unknown>);
    const listen: PeerListen = { server, id, filter, response, isOpen: true };
    openEvents(response);
    response.once('close', () => {
      listen.isOpen = false;
      this.unlistens.add(listen);
    });
    await listening?.(filter);
    const told = { notifications: filter, _meta: { [subscriptionKey]: id } };
    writeEvent(response, {}, { method: 'notifications/subscriptions/acknowledged', params: told });
    this.listens.add(listen);
  }
}

function answer(behaviour: ModernBehaviour, request: RpcMessage, exchange: PeerExchange): void {
  const { response } = exchange;
  const id = JSON.stringify(request.id);
  const write = (status: number, outcome: string) =>
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(`{"jsonrpc":"2.0","id":${id},${outcome}}`);
  try {
    const result = resultOf(behaviour, request, exchange);
    if (result === undefined) return;
    write(200, `"result":${typeof result === 'string' ? result : JSON.stringify(result)}`);
  } catch (error) {
    const { code = -32603, message } = error as Refusal;
    write(code === -32601 ? 404 : 200, `"error":${JSON.stringify({ code, message })}`);
  }
}

/** Undefined if the behaviour responds itself. */
function resultOf(behaviour: ModernBehaviour, request: RpcMessage, exchange: PeerExchange): unknown {
  const { capabilities = { tools: {} }, discovered, lists = {}, answer: others } = behaviour;
  const listed = lists[request.method!];
  if (listed !== undefined) return { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...listed() };
  if (request.method === 'server/discover') {
    if (typeof discovered === 'string') return discovered;
    return {
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities,
      ttlMs: 0,
      cacheScope: 'private',
      ...discovered,
    };
  }
  if (others === undefined) throw new Refusal(-32601, `Unknown method: ${request.method}`);
  return others(request, exchange);
}

const listFilters: Record<string, string> = {
  'notifications/tools/list_changed': 'toolsListChanged',
  'notifications/prompts/list_changed': 'promptsListChanged',
  'notifications/resources/list_changed': 'resourcesListChanged',
};

function isWanted(filter: Record<string, unknown>, method: string, params: object): boolean {
  const key = listFilters[method];
  if (key !== undefined) return filter[key] === true;
  return ((filter.resourceSubscriptions ?? []) as unknown[]).includes((params as { uri?: unknown }).uri);
}

export function tool(name: string, more: object = {}): object {
  return { name, inputSchema: { type: 'object' }, ...more };
}

export function says(text: string): object {
  return { resultType: 'complete', content: [{ type: 'text', text }] };
}
