import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Inbox } from '../../../test/helpers/inbox.ts';
import { HttpExchange } from './exchange.ts';
import { ConnectionPool } from './pool.ts';
import { requestHead } from './request-head.ts';
import { MalformedResponseError, type ResponseHead } from './response-head.ts';

interface Outcome {
  status: number;
  body: Buffer;
  error: Error | undefined;
  neverSent: boolean | undefined;
}

/** An exchange that keeps what it hears. */
class Recorded extends HttpExchange {
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

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Peer {
  url: URL;
  /** Every connection that was made, in order. */
  sockets: Inbox<Socket>;
}

async function listen(server: Server, scheme = 'http', host = '127.0.0.1'): Promise<Peer> {
  const sockets = new Inbox<Socket>();
  const all: Socket[] = [];
  server.on('connection', (socket: Socket) => {
    all.push(socket);
    socket.on('error', () => {});
    sockets.add(socket);
  });
  server.listen(0, host);
  await once(server, 'listening');
  cleanups.push(() => {
    for (const socket of all) socket.destroy();
    server.close();
    return once(server, 'close');
  });
  const { address, port } = server.address() as AddressInfo;
  return {
    url: new URL(`${scheme}://${address.includes(':') ? `[${address}]` : address}:${port}/mcp`),
    sockets,
  };
}

/** A real HTTP server. */
function serveHttp(answer: RequestListener): Promise<Peer> {
  return listen(createHttpServer(answer));
}

/** A server that says just this, to each request on each connection in turn. */
function serveRaw(answer: (socket: Socket, request: number) => void): Promise<Peer> {
  return listen(
    createTcpServer((socket) => {
      let requests = 0;
      socket.on('data', () => answer(socket, ++requests));
    }),
  );
}

function openPool({ url }: Peer): ConnectionPool {
  const pool = new ConnectionPool(url);
  cleanups.push(() => pool.destroy());
  return pool;
}

function post(pool: ConnectionPool, { url }: Peer, body = Buffer.from('{}')): Recorded {
  const exchange = new Recorded();
  pool.send(exchange, requestHead('POST', url, url.pathname, {}, {}), body);
  return exchange;
}

function answerText(body: string, headers = ''): string {
  return `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${headers}\r\n${body}`;
}

describe('a pool of connections', () => {
  it('sends the request and gives the answer', async () => {
    const peer = await serveHttp(async (request, response) => {
      const body = await buffer(request);
      response
        .setHeader('mcp-session-id', 's1')
        .end(`${request.method} ${request.url} ${request.headers['x-a']} ${body}`);
    });
    const exchange = new Recorded();
    const head = requestHead('POST', peer.url, '/mcp?x=1', { 'X-A': 'b' }, {});
    openPool(peer).send(exchange, head, Buffer.from('"→"'));
    const { status, body } = await exchange.outcome;
    expect([status, body.toString()]).toEqual([200, 'POST /mcp?x=1 b "→"']);
    expect((await exchange.head).sessionId).toBe('s1');
  });

  it('uses a connection again, one exchange at a time', async () => {
    const peer = await serveHttp((_request, response) => response.end('ok'));
    const pool = openPool(peer);
    for (let count = 0; count < 5; count++) expect((await post(pool, peer).outcome).status).toBe(200);
    await Promise.all([post(pool, peer).outcome, post(pool, peer).outcome]);
    expect(peer.sockets.items.length).toBe(2);
  });

  it.each([0, 1, 200, 13_000, 100_000, 3_000_000])(
    'carries bodies of %i bytes there and back',
    async (size) => {
      const peer = await serveHttp(async (request, response) => {
        const body = await buffer(request);
        if (body.length % 2 === 0) response.setHeader('content-length', body.length);
        response.write(body.subarray(0, body.length / 3));
        response.end(body.subarray(body.length / 3));
      });
      const pool = openPool(peer);
      for (const length of [size, size + 1]) {
        const sent = randomBytes(length);
        const { body, error } = await post(pool, peer, sent).outcome;
        expect(error).toBeUndefined();
        expect(body.equals(sent)).toBe(true);
      }
      expect(peer.sockets.items.length).toBe(1);
    },
  );

  it('opens 256 connections and lets the other exchanges wait in line', async () => {
    const arrived: ServerResponse[] = [];
    const order: string[] = [];
    const all = Promise.withResolvers<void>();
    const peer = await serveHttp(async (request, response) => {
      order.push((await buffer(request)).toString());
      if (arrived.length >= 256) {
        response.end('late');
        return;
      }
      arrived.push(response);
      if (arrived.length === 256) all.resolve();
    });
    const pool = openPool(peer);
    const exchanges = Array.from({ length: 300 }, (_, index) => post(pool, peer, Buffer.from(String(index))));
    await all.promise;
    expect(peer.sockets.items.length).toBe(256);
    exchanges[260]!.abort();
    arrived[0]!.end('early');
    const rest = exchanges.filter((_, index) => index >= 256 && index !== 260);
    for (const exchange of rest) expect((await exchange.outcome).body.toString()).toBe('late');
    for (const response of arrived.slice(1)) response.end('early');
    await Promise.all(exchanges.filter((_, index) => index !== 260).map(({ outcome }) => outcome));
    expect(peer.sockets.items.length).toBe(256);
    // One connection carried all that waited, so they came in the order in which they were sent.
    expect(order.slice(256).map(Number)).toEqual([
      256,
      257,
      258,
      259,
      ...Array.from({ length: 39 }, (_, at) => at + 261),
    ]);
    expect(exchanges[260]!.calls).toBe(0);
  });

  it('skips interim answers', async () => {
    const peer = await serveRaw((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n');
      socket.write(answerText('done'));
    });
    const { status, body } = await post(openPool(peer), peer).outcome;
    expect([status, body.toString()]).toEqual([200, 'done']);
  });

  it('takes a body that ends with the connection', async () => {
    const peer = await serveRaw((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it'));
    const { body, error } = await post(openPool(peer), peer).outcome;
    expect([body.toString(), error]).toEqual(['all of it', undefined]);
  });

  it('reaches a server by its IPv6 address', async (context) => {
    const peer = await listen(
      createHttpServer((request, response) => response.end(request.headers.host)),
      'http',
      '::1',
    ).catch(() => context.skip('there is no IPv6 here'));
    const { body } = await post(openPool(peer), peer).outcome;
    expect(body.toString()).toBe(peer.url.host);
  });
});

describe('a kept connection', () => {
  it('is not used after the server closed it', async () => {
    const peer = await serveRaw((socket) => socket.write(answerText('ok')));
    const pool = openPool(peer);
    await post(pool, peer).outcome;
    const [first] = peer.sockets.items;
    first!.end();
    await once(first!, 'close');
    expect((await post(pool, peer).outcome).status).toBe(200);
    expect(peer.sockets.items.length).toBe(2);
  });

  it('is not used after bytes came that nobody asked for', async () => {
    const peer = await serveRaw((socket) => socket.write(answerText('ok')));
    const pool = openPool(peer);
    await post(pool, peer).outcome;
    const [first] = peer.sockets.items;
    first!.write('HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n');
    await once(first!, 'close');
    expect((await post(pool, peer).outcome).status).toBe(200);
    expect(peer.sockets.items.length).toBe(2);
  });

  it('is not used when more came than the answer', async () => {
    const peer = await serveRaw((socket) => socket.write(`${answerText('ok')}HTTP/1.1 500 Injected\r\n\r\n`));
    const pool = openPool(peer);
    for (let count = 0; count < 2; count++)
      expect((await post(pool, peer).outcome).body.toString()).toBe('ok');
    expect(peer.sockets.items.length).toBe(2);
  });

  it('is not used where the server says that it closes', async () => {
    const peer = await serveRaw((socket) => socket.write(answerText('ok', 'connection: close\r\n')));
    const pool = openPool(peer);
    for (let count = 0; count < 2; count++) expect((await post(pool, peer).outcome).status).toBe(200);
    expect(peer.sockets.items.length).toBe(2);
  });

  it.each([
    ['', 3_900, 1],
    ['', 4_100, 2],
    ['keep-alive: timeout=10\r\n', 8_900, 1],
    ['keep-alive: timeout=10\r\n', 9_100, 2],
    ['keep-alive: timeout=1000\r\n', 30_100, 2],
  ])('is used as long as the server may keep it (%j, after %i ms)', async (headers, idleMs, connections) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const peer = await serveRaw((socket) => socket.write(answerText('ok', headers)));
    const pool = openPool(peer);
    await post(pool, peer).outcome;
    vi.setSystemTime(Date.now() + idleMs);
    expect((await post(pool, peer).outcome).status).toBe(200);
    expect(peer.sockets.items.length).toBe(connections);
  });

  it('is closed when it was not used for so long', async () => {
    const peer = await serveRaw((socket) => socket.write(answerText('ok', 'keep-alive: timeout=2\r\n')));
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] });
    await post(openPool(peer), peer).outcome;
    const [socket] = peer.sockets.items;
    const closed = once(socket!, 'close');
    await vi.advanceTimersByTimeAsync(1_001);
    await closed;
  });

  it('that the server closes at the next request may have taken it', async () => {
    const peer = await serveRaw((socket, request) => {
      if (request === 1) socket.write(answerText('ok'));
      else socket.end();
    });
    const pool = openPool(peer);
    await post(pool, peer).outcome;
    const { error, neverSent } = await post(pool, peer).outcome;
    expect(error?.message).toMatch(/without an answer/);
    expect(neverSent).toBe(false);
  });

  it('is not used while it is still writing a request that was answered early', async () => {
    const peer = await listen(
      createTcpServer((socket) => {
        socket.once('data', () => {
          socket.pause();
          socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n');
        });
      }),
    );
    const pool = openPool(peer);
    const { status } = await post(pool, peer, Buffer.alloc(50_000_000)).outcome;
    expect(status).toBe(413);
    const [socket] = peer.sockets.items;
    const closed = once(socket!, 'close');
    socket!.resume();
    await closed;
  });
});

describe('an exchange fails', () => {
  it('before it is sent where nobody listens', async () => {
    const server = createTcpServer();
    const peer = await listen(server);
    server.close();
    const { error, neverSent } = await post(openPool(peer), peer).outcome;
    expect((error as NodeJS.ErrnoException).code).toBe('ECONNREFUSED');
    expect(neverSent).toBe(true);
  });

  it('before it is sent where the name is unknown', async () => {
    const peer = { url: new URL('http://switchboard.invalid/'), sockets: new Inbox<Socket>() };
    const { error, neverSent } = await post(openPool(peer), peer).outcome;
    expect((error as NodeJS.ErrnoException).code).toMatch(/ENOTFOUND|EAI_AGAIN/);
    expect(neverSent).toBe(true);
  });

  it('before it is sent where a TLS handshake does not succeed', async () => {
    const peer = await serveRaw((socket) => socket.end('not TLS'));
    const secure = { ...peer, url: new URL(peer.url.href.replace('http:', 'https:')) };
    const { error, neverSent } = await post(openPool(secure), secure).outcome;
    expect(error).toBeInstanceOf(Error);
    expect(neverSent).toBe(true);
  });

  it.each([
    ['without an answer', ''],
    ['within its answer', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['within its answer', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'],
    ['within its answer', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
  ])('when the server closes %s (%j)', async (where, text) => {
    const peer = await serveRaw((socket) => socket.end(text));
    const exchange = post(openPool(peer), peer);
    const { error, neverSent } = await exchange.outcome;
    expect(error?.message).toContain(where);
    expect([neverSent, exchange.calls]).toEqual([false, 1]);
  });

  it('when the connection is reset', async () => {
    const peer = await serveRaw((socket) => socket.resetAndDestroy());
    const { error, neverSent } = await post(openPool(peer), peer).outcome;
    expect((error as NodeJS.ErrnoException).code).toMatch(/ECONNRESET|EPIPE/);
    expect(neverSent).toBe(false);
  });

  it('when the answer is not HTTP, and the connection is closed', async () => {
    const peer = await serveRaw((socket) => socket.write('* OK IMAP4rev1 ready\r\n'));
    const { error, neverSent } = await post(openPool(peer), peer).outcome;
    expect(error).toBeInstanceOf(MalformedResponseError);
    expect(neverSent).toBe(false);
    const [socket] = peer.sockets.items;
    if (!socket!.destroyed) await once(socket!, 'close');
  });

  it('alone when whoever hears the answer throws', async () => {
    const peer = await serveHttp((_request, response) => response.end('ok'));
    const pool = openPool(peer);
    const faulty = post(pool, peer);
    faulty.onEnd = () => {
      throw new Error('not mine');
    };
    expect((await faulty.outcome).error?.message).toBe('not mine');
    expect((await post(pool, peer).outcome).status).toBe(200);
  });
});

describe('an aborted exchange', () => {
  it('closes its connection, and hears nothing more', async () => {
    const peer = await serveHttp((request, response) => {
      if (request.headers['content-length'] === '5') response.write('begun');
      else response.end('ok');
    });
    const pool = openPool(peer);
    const exchange = post(pool, peer, Buffer.from('12345'));
    await exchange.head;
    const [socket] = peer.sockets.items;
    const closed = once(socket!, 'close');
    exchange.abort();
    await closed;
    expect((await post(pool, peer).outcome).status).toBe(200);
    expect(exchange.calls).toBe(0);
  });

  it('makes room for one that waits', async () => {
    const full = Promise.withResolvers<void>();
    let held = 0;
    const peer = await serveHttp((_request, response) => {
      if (++held === 256) full.resolve();
      if (held > 256) response.end('room');
    });
    const pool = openPool(peer);
    const [first] = Array.from({ length: 256 }, () => post(pool, peer));
    const waiting = post(pool, peer);
    await full.promise;
    first!.abort();
    expect((await waiting.outcome).body.toString()).toBe('room');
  });

  it('is not sent when it had no connection yet', async () => {
    const peer = await serveHttp((_request, response) => response.end('ok'));
    const pool = openPool(peer);
    const exchange = post(pool, peer);
    exchange.abort();
    expect((await post(pool, peer).outcome).status).toBe(200);
    expect(exchange.calls).toBe(0);
  });

  it('goes with its pool', async () => {
    const peer = await serveHttp(() => {});
    const pool = openPool(peer);
    const exchange = post(pool, peer);
    const socket = await peer.sockets.first(() => true);
    const closed = once(socket, 'close');
    pool.destroy();
    await closed;
    post(pool, peer);
    expect(exchange.calls).toBe(0);
  });
});
