import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { HttpExchange } from '../../src/channels/http-client/exchange.ts';
import { ConnectionPool } from '../../src/channels/http-client/pool.ts';
import { requestHead } from '../../src/channels/http-client/request-head.ts';
import type { ResponseHead } from '../../src/channels/http-client/response-head.ts';
import { Inbox } from './inbox.ts';

interface Outcome {
  status: number;
  body: Buffer;
  error: Error | undefined;
  neverSent: boolean | undefined;
}

export class Recorded extends HttpExchange {
  readonly outcome: Promise<Outcome>;
  readonly head: Promise<ResponseHead>;
  calls = 0;
  private chunks: Buffer[] = [];
  private settle!: (outcome: Outcome) => void;
  private begin!: (head: ResponseHead) => void;
  private status = 0;

  constructor() {
    super();
    this.outcome = new Promise((resolve) => {
      this.settle = resolve;
    });
    this.head = new Promise((resolve) => {
      this.begin = resolve;
    });
  }

  onHead(head: ResponseHead): void {
    this.status = head.status;
    this.begin(head);
  }

  onData(chunk: Buffer): void {
    this.chunks.push(chunk);
  }

  onEnd(): void {
    this.finish(undefined, undefined);
  }

  onError(error: Error, neverSent: boolean): void {
    this.finish(error, neverSent);
  }

  private finish(error: Error | undefined, neverSent: boolean | undefined): void {
    this.calls++;
    this.settle({ status: this.status, body: Buffer.concat(this.chunks), error, neverSent });
  }
}

export interface Peer {
  url: URL;
  sockets: Inbox<Socket>;
}

export async function listen(server: Server, scheme = 'http', host = '127.0.0.1'): Promise<Peer> {
  const sockets = new Inbox<Socket>();
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => {});
    sockets.add(socket);
  });
  server.listen(0, host);
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const socket of sockets.items) socket.destroy();
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  });
  const { address, port } = server.address() as AddressInfo;
  return {
    url: new URL(`${scheme}://${address.includes(':') ? `[${address}]` : address}:${port}/mcp`),
    sockets,
  };
}

export function serveHttp(answer: RequestListener): Promise<Peer> {
  return listen(createHttpServer(answer));
}

/** Sends exactly these bytes for each request of each connection. */
export function serveRaw(answer: (socket: Socket, request: number) => void): Promise<Peer> {
  return listen(
    createTcpServer((socket) => {
      let requests = 0;
      socket.on('data', () => answer(socket, ++requests));
    }),
  );
}

export function openPool({ url }: Peer): ConnectionPool {
  const pool = new ConnectionPool(url);
  onTestFinished(() => pool.destroy());
  return pool;
}

export function post(pool: ConnectionPool, { url }: Peer, body = Buffer.from('{}')): Recorded {
  const exchange = new Recorded();
  pool.send(exchange, requestHead('POST', url, url.pathname, {}, {}), [body]);
  return exchange;
}

export function answerText(body: string, headers = ''): string {
  return `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${headers}\r\n${body}`;
}
