import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Inbox } from './inbox.ts';
import type { RpcMessage } from './raw-http.ts';

export interface PeerExchange {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  message: RpcMessage | undefined;
  response: ServerResponse;
}

/** True if the quirk handled the exchange; otherwise the peer responds normally. */
export type Quirk = (exchange: PeerExchange) => boolean;

/** Plays MCP servers over HTTP, one under each path, each with a quirk. */
export class HttpPeer implements AsyncDisposable {
  readonly exchanges = new Inbox<PeerExchange>();
  private readonly quirks: Record<string, Quirk>;
  private readonly server: Server;

  private constructor(quirks: Record<string, Quirk>) {
    this.quirks = quirks;
    this.server = createServer(async (request, response) => {
      const text = (await buffer(request)).toString();
      const message = text === '' ? undefined : (JSON.parse(text) as RpcMessage);
      const { method = '', url: path = '', headers } = request;
      const exchange = { method, path, headers, message, response };
      const quirk = this.quirks[path.slice(1).split(/[/?]/)[0]!];
      if (quirk?.(exchange) !== true) behave(exchange);
      this.exchanges.add(exchange);
    });
  }

  static async start(quirks: Record<string, Quirk>): Promise<HttpPeer> {
    const peer = new HttpPeer(quirks);
    peer.server.listen(0, '127.0.0.1');
    await once(peer.server, 'listening');
    return peer;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  configuration(): Record<string, { url: string }> {
    const names = Object.keys(this.quirks);
    return Object.fromEntries(names.map((name) => [name, { url: `${this.origin}/${name}` }]));
  }

  /** The first match, past or future. */
  sees(name: string, fits: (exchange: PeerExchange) => boolean): Promise<PeerExchange> {
    return this.exchanges.first((exchange) => exchange.path === `/${name}` && fits(exchange));
  }

  seenBy(name: string): PeerExchange[] {
    return this.exchanges.items.filter(({ path }) => path === `/${name}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }
}

function behave({ method, message, response }: PeerExchange): void {
  if (method === 'GET') response.writeHead(405).end();
  else if (method === 'DELETE') response.writeHead(200).end();
  else if (message?.id === undefined) response.writeHead(202).end();
  else answerJson(response, { id: message.id, result: goodResult(message) });
}

export function goodResult({ method, params = {} }: RpcMessage): object {
  switch (method) {
    case 'initialize': {
      const { protocolVersion } = params;
      const capabilities = { tools: { listChanged: true }, logging: {} };
      return { protocolVersion, capabilities, serverInfo: { name: 'peer', version: '1' } };
    }
    case 'tools/list':
      return { tools: [{ name: 'greet', inputSchema: { type: 'object' } }] };
    case 'tools/call':
      return { content: [{ type: 'text', text: 'hello' }] };
    default:
      return {};
  }
}

export function answerJson(
  response: ServerResponse,
  message: object,
  headers: Record<string, string> = {},
): void {
  const body = JSON.stringify(Array.isArray(message) ? message : { jsonrpc: '2.0', ...message });
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body);
}

/** Issues a session id per handshake, and counts them. */
export function sessionGiver() {
  let sessions = 0;
  return {
    get count() {
      return sessions;
    },
    gives({ message, response }: PeerExchange): boolean {
      if (message?.method !== 'initialize') return false;
      const headers = { 'mcp-session-id': `session ${++sessions}` };
      answerJson(response, { id: message.id, result: goodResult(message) }, headers);
      return true;
    },
  };
}

export function openEvents(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
}

/** Writes the fields in this order, a message as data. */
export function writeEvent(response: ServerResponse, fields: Record<string, string>, message?: object): void {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  const data =
    message === undefined ? 'data:\n' : `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
  response.write(`${lines.join('')}${data}\n`);
}
