import { once } from 'node:events';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  answerText,
  listen,
  openPool,
  post,
  serveHttp,
  serveRaw,
} from '../../../test/helpers/http-exchange.ts';
import { Inbox } from '../../../test/helpers/inbox.ts';
import { MalformedResponseError } from './response-head.ts';

afterEach(() => {
  vi.useRealTimers();
});

describe('an idle connection', () => {
  it('is not reused after the server closed it', async () => {
    const peer = await serveRaw((socket) => socket.write(answerText('ok')));
    const pool = openPool(peer);
    await post(pool, peer).outcome;
    const [first] = peer.sockets.items;
    first!.end();
    await once(first!, 'close');
    expect((await post(pool, peer).outcome).status).toBe(200);
    expect(peer.sockets.items.length).toBe(2);
  });

  it('is not reused after unsolicited bytes', async () => {
    const peer = await serveRaw((socket) => socket.write(answerText('ok')));
    const pool = openPool(peer);
    await post(pool, peer).outcome;
    const [first] = peer.sockets.items;
    first!.write('HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n');
    await once(first!, 'close');
    expect((await post(pool, peer).outcome).status).toBe(200);
    expect(peer.sockets.items.length).toBe(2);
  });

  it('is not reused if bytes follow the response', async () => {
    const peer = await serveRaw((socket) => socket.write(`${answerText('ok')}HTTP/1.1 500 Injected\r\n\r\n`));
    const pool = openPool(peer);
    for (let count = 0; count < 2; count++)
      expect((await post(pool, peer).outcome).body.toString()).toBe('ok');
    expect(peer.sockets.items.length).toBe(2);
  });

  it('is not reused if the server announces that it closes', async () => {
    const peer = await serveRaw((socket) => socket.write(answerText('ok', 'connection: close\r\n')));
    const pool = openPool(peer);
    for (let count = 0; count < 2; count++) expect((await post(pool, peer).outcome).status).toBe(200);
    expect(peer.sockets.items.length).toBe(2);
  });

  it.each([
    ['', 2_900, 1],
    ['', 3_100, 2],
    ['keep-alive: timeout=10\r\n', 7_900, 1],
    ['keep-alive: timeout=10\r\n', 8_100, 2],
    ['keep-alive: timeout=1000\r\n', 30_100, 2],
  ])(
    'is reused as long as the server may keep it (%j, after %i ms)',
    async (headers, idleMs, connections) => {
      vi.useFakeTimers({ toFake: ['Date'] });
      const peer = await serveRaw((socket) => socket.write(answerText('ok', headers)));
      const pool = openPool(peer);
      await post(pool, peer).outcome;
      vi.setSystemTime(Date.now() + idleMs);
      expect((await post(pool, peer).outcome).status).toBe(200);
      expect(peer.sockets.items.length).toBe(connections);
    },
  );

  it('is closed after the idle timeout', async () => {
    const peer = await serveRaw((socket) => socket.write(answerText('ok', 'keep-alive: timeout=3\r\n')));
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] });
    await post(openPool(peer), peer).outcome;
    const [socket] = peer.sockets.items;
    const closed = once(socket!, 'close');
    await vi.advanceTimersByTimeAsync(1_001);
    await closed;
  });

  it('that the server closes during a request may have delivered it', async () => {
    const peer = await serveRaw((socket, request) => {
      if (request === 1) socket.write(answerText('ok'));
      else socket.end();
    });
    const pool = openPool(peer);
    await post(pool, peer).outcome;
    const { error, neverSent } = await post(pool, peer).outcome;
    expect(error?.message).toMatch(/without a response/);
    expect(neverSent).toBe(false);
  });

  it('is not reused while it still writes a request that was answered early', async () => {
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
  it('before it is sent if the connection is refused', async () => {
    const server = createTcpServer();
    const peer = await listen(server);
    server.close();
    const { error, neverSent } = await post(openPool(peer), peer).outcome;
    expect((error as NodeJS.ErrnoException).code).toBe('ECONNREFUSED');
    expect(neverSent).toBe(true);
  });

  it('before it is sent if the host name is unknown', async () => {
    const peer = { url: new URL('http://switchboard.invalid/'), sockets: new Inbox<Socket>() };
    const { error, neverSent } = await post(openPool(peer), peer).outcome;
    expect((error as NodeJS.ErrnoException).code).toMatch(/ENOTFOUND|EAI_AGAIN/);
    expect(neverSent).toBe(true);
  });

  it.each(['', 'not TLS'])('before it is sent if the TLS handshake fails (%j)', async (text) => {
    const peer = await serveRaw((socket) => socket.end(text));
    const secure = { ...peer, url: new URL(peer.url.href.replace('http:', 'https:')) };
    const { error, neverSent } = await post(openPool(secure), secure).outcome;
    expect(error).toBeInstanceOf(Error);
    expect(neverSent).toBe(true);
  });

  it.each([
    ['without a response', ''],
    ['during its response', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['during its response', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'],
    ['during its response', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
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

  it('when the response is not HTTP, and the connection is closed', async () => {
    const peer = await serveRaw((socket) => socket.write('* OK IMAP4rev1 ready\r\n'));
    const { error, neverSent } = await post(openPool(peer), peer).outcome;
    expect(error).toBeInstanceOf(MalformedResponseError);
    expect(neverSent).toBe(false);
    const [socket] = peer.sockets.items;
    if (!socket!.destroyed) await once(socket!, 'close');
  });

  it('alone when its response handler throws', async () => {
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
