import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { makeIdentity } from '../../../test/helpers/identity.ts';
import { LocalAccess } from '../../identity/local-access.ts';
import { ClientConnections } from './connections.ts';

/** More than a connection buffers without a reader. */
const ANSWER_BYTES = 64 * 1024 * 1024;

const identity = makeIdentity();
const schemes = identity === undefined ? (['http'] as const) : (['http', 'https'] as const);

type Scheme = (typeof schemes)[number];

/** A server that disconnects slow clients immediately. */
function open(scheme: Scheme) {
  const server = scheme === 'http' ? createServer() : createSecureServer(identity!);
  const limits = { maxConnections: 10, slowClientMs: 20 };
  const connections = new ClientConnections(
    server,
    limits,
    new LocalAccess(undefined, false),
    () => {},
    1e12,
  );
  onTestFinished(async () => {
    connections.close();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return { server, connections };
}

/** Resolves when the connection can carry requests. */
async function connectTo(scheme: Scheme, port: number): Promise<Socket> {
  const host = '127.0.0.1';
  const socket =
    scheme === 'http' ? connect(port, host) : connectSecurely({ port, host, ca: identity!.cert });
  socket.on('error', () => {});
  await once(socket, scheme === 'http' ? 'connect' : 'secureConnect');
  return socket;
}

/** Requests an endless stream and pipelines the paths behind it. Resolves when the connection closes. */
async function askBehindStream(scheme: Scheme, port: number, ...paths: string[]) {
  const socket = await connectTo(scheme, port);
  const closed = once(socket.resume(), 'close');
  const requests = ['/stream', ...paths].map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  socket.write(requests.join(''));
  return { socket, closed };
}

describe.each(schemes)('with %s', (scheme) => {
  it.each([
    ['a whole response', (response: ServerResponse) => void response.end(Buffer.alloc(ANSWER_BYTES))],
    ['a stream', (response: ServerResponse) => void response.write(Buffer.alloc(ANSWER_BYTES))],
  ])('a client that does not read %s is disconnected', async (_what, answer) => {
    const { server, connections } = open(scheme);
    const closed = new Promise<ServerResponse>((resolve) => {
      server.on('request', (_request, response) => {
        connections.began(response);
        response.once('close', () => resolve(response));
        answer(response);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = await connectTo(scheme, (server.address() as AddressInfo).port);
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    expect((await closed).writableFinished).toBe(false);
    socket.destroy();
  });

  describe('requests pipelined behind an event stream', () => {
    let port = 0;
    let asked = 0;

    beforeEach(async () => {
      const { server, connections } = open(scheme);
      asked = 0;
      server.on('request', (request, response: ServerResponse) => {
        if (!connections.began(response)) return;
        asked++;
        if (request.url === '/stream') response.write(': open');
        if (request.url === '/large') response.end(Buffer.alloc(1024 * 1024));
        if (request.url === '/small') response.end('small');
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      ({ port } = server.address() as AddressInfo);
    });

    it('are not buffered if they are large', async () => {
      const small = await askBehindStream(scheme, port, '/small');
      await (await askBehindStream(scheme, port, '/large')).closed;
      expect(small.socket.destroyed).toBe(false);
      small.socket.destroy();
    });

    it('are limited to a hundred', async () => {
      await (await askBehindStream(scheme, port, ...Array<string>(500).fill('/nothing'))).closed;
      expect(asked).toBe(101);
    });
  });
});
