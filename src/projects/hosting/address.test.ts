import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createPort, type Server } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../../test/helpers/free-port.ts';
import { answersHttp } from './address.ts';

async function addressOf(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

it('accepts any HTTP response', async () => {
  const url = await addressOf(createServer((_, response) => response.writeHead(405).end()));
  expect(await answersHttp(url)).toBe(true);
});

it('rejects a port that closes connections, and a closed port', async () => {
  const url = await addressOf(createPort((socket) => socket.destroy()));
  expect(await answersHttp(url)).toBe(false);
  expect(await answersHttp(`http://127.0.0.1:${await freePort()}/mcp`)).toBe(false);
});
