import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { LocalAccess } from '../../identity/local-access.ts';
import { ClientConnections } from './connections.ts';

/** More than a connection buffers without a reader. */
const ANSWER_BYTES = 64 * 1024 * 1024;

/** A server that disconnects slow clients immediately. */
function open() {
  const server = createServer();
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

it.each([
  ['a whole response', (response: ServerResponse) => void response.end(Buffer.alloc(ANSWER_BYTES))],
  ['a stream', (response: ServerResponse) => void response.write(Buffer.alloc(ANSWER_BYTES))],
])('a client that does not read %s is disconnected', async (_what, answer) => {
  const { server, connections } = open();
  const closed = new Promise<ServerResponse>((resolve) => {
    server.on('request', (_request, response) => {
      connections.began(response);
      response.once('close', () => resolve(response));
      answer(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  expect((await closed).writableFinished).toBe(false);
  socket.destroy();
});

/** Requests an endless stream and pipelines the paths behind it. Resolves when the connection closes. */
async function askBehindStream(port: number, ...paths: string[]) {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  const closed = once(socket.resume(), 'close');
  const requests = ['/stream', ...paths].map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await once(socket, 'connect');
  socket.write(requests.join(''));
  return { socket, closed };
}

describe('requests pipelined behind an event stream', () => {
  let port = 0;
  let asked = 0;

  beforeEach(async () => {
    const { server, connections } = open();
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
    const small = await askBehindStream(port, '/small');
    await (await askBehindStream(port, '/large')).closed;
    expect(small.socket.destroyed).toBe(false);
    small.socket.destroy();
  });

  it('are limited to a hundred', async () => {
    await (await askBehindStream(port, ...Array<string>(500).fill('/nothing'))).closed;
    expect(asked).toBe(101);
  });
});
