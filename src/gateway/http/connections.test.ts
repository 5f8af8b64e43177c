import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Connections } from './connections.ts';

/** More than a connection takes without anybody who reads. */
const ANSWER_BYTES = 64 * 1024 * 1024;

it.each([
  ['a whole answer', (response: ServerResponse) => void response.end(Buffer.alloc(ANSWER_BYTES))],
  ['a stream', (response: ServerResponse) => void response.write(Buffer.alloc(ANSWER_BYTES))],
])('a client that does not read %s is cut off', async (_what, answer) => {
  const server = createServer();
  const connections = new Connections(server, { maxConnections: 10, slowClientMs: 20 }, () => {}, 1e12);
  onTestFinished(async () => {
    connections.close();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
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
