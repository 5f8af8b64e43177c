import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it, vi } from 'vitest';
import {
  answerText,
  listen,
  openPool,
  post,
  Recorded,
  serveHttp,
  serveRaw,
} from '../../../test/helpers/http-exchange.ts';
import { requestHead } from './request-head.ts';

describe('a pool of connections', () => {
  it('sends the request and returns the response', async () => {
    const peer = await serveHttp(async (request, response) => {
      const body = await buffer(request);
      response
        .setHeader('mcp-session-id', 's1')
        .end(`${request.method} ${request.url} ${request.headers['x-a']} ${body}`);
    });
    const exchange = new Recorded();
    const head = requestHead('POST', peer.url, '/mcp?x=1', { 'X-A': 'b' }, {});
    openPool(peer).send(exchange, head, [Buffer.from('"→"')]);
    const { status, body } = await exchange.outcome;
    expect([status, body.toString()]).toEqual([200, 'POST /mcp?x=1 b "→"']);
    expect((await exchange.head).sessionId).toBe('s1');
  });

  it('reuses a connection, one exchange at a time', async () => {
    const peer = await serveHttp((_request, response) => response.end('ok'));
    const pool = openPool(peer);
    for (let count = 0; count < 5; count++) expect((await post(pool, peer).outcome).status).toBe(200);
    await Promise.all([post(pool, peer).outcome, post(pool, peer).outcome]);
    expect(peer.sockets.items.length).toBe(2);
  });

  it('tolerates a clock that jumps between two readings', async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on('warning', warned);
    let now = Date.now();
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => (now += 3_600_000));
    try {
      const peer = await serveHttp((_request, response) => response.end('ok'));
      const pool = openPool(peer);
      for (let count = 0; count < 2; count++) expect((await post(pool, peer).outcome).status).toBe(200);
      expect(warnings).toEqual([]);
    } finally {
      clock.mockRestore();
      process.off('warning', warned);
    }
  });

  it.each([0, 1, 200, 13_000, 100_000, 3_000_000])(
    'transfers bodies of %i bytes in both directions',
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

  it('opens 256 connections and queues further exchanges', async () => {
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
    // One connection carried the queue, so it arrived in order.
    expect(order.slice(256).map(Number)).toEqual([
      256,
      257,
      258,
      259,
      ...Array.from({ length: 39 }, (_, at) => at + 261),
    ]);
    expect(exchanges[260]!.calls).toBe(0);
  });

  it('skips interim responses', async () => {
    const peer = await serveRaw((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n');
      socket.write(answerText('done'));
    });
    const { status, body } = await post(openPool(peer), peer).outcome;
    expect([status, body.toString()]).toEqual([200, 'done']);
  });

  it('accepts a body that ends with the connection', async () => {
    const peer = await serveRaw((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it'));
    const { body, error } = await post(openPool(peer), peer).outcome;
    expect([body.toString(), error]).toEqual(['all of it', undefined]);
  });

  it('connects to an IPv6 address', async (context) => {
    const peer = await listen(
      createHttpServer((request, response) => response.end(request.headers.host)),
      'http',
      '::1',
    ).catch(() => context.skip('there is no IPv6 here'));
    const { body } = await post(openPool(peer), peer).outcome;
    expect(body.toString()).toBe(peer.url.host);
  });
});

describe('an aborted exchange', () => {
  it('closes its connection and receives nothing more', async () => {
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

  it('frees its connection for a queued exchange', async () => {
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

  it('is not sent if it had no connection yet', async () => {
    const peer = await serveHttp((_request, response) => response.end('ok'));
    const pool = openPool(peer);
    const exchange = post(pool, peer);
    exchange.abort();
    expect((await post(pool, peer).outcome).status).toBe(200);
    expect(exchange.calls).toBe(0);
  });

  it('ends when its pool closes', async () => {
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
