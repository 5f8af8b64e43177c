import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { requireOtherUser, startAsOther } from '../../test/helpers/other-user.ts';
import { LocalUsers } from './local-users.ts';
import { readOwners } from './sockets.ts';

/** Leaves the sockets unread, like a request that is not admitted yet. */
async function listen(host: string): Promise<{ server: Server; port: number; accepted(): Promise<Socket> }> {
  const server = createServer({ pauseOnConnect: true });
  const waiting: Socket[] = [];
  server.on('connection', (socket) => waiting.push(socket));
  server.listen(0, host);
  await once(server, 'listening');
  const accepted = async () => {
    if (waiting.length === 0) await once(server, 'connection');
    return waiting.shift()!;
  };
  return { server, port: (server.address() as AddressInfo).port, accepted };
}

async function freePort(): Promise<number> {
  const { server, port } = await listen('127.0.0.1');
  server.close();
  await once(server, 'close');
  return port;
}

describe('a local connection', () => {
  it.each(['127.0.0.1', '::1'])('from our own user to %s is recognized', async (host) => {
    const { server, port, accepted } = await listen(host);
    const client = connect(port, host);
    const socket = await accepted();
    const users = new LocalUsers();
    expect(users.isOwn(socket)).toBe(false);
    expect(await users.ask(socket)).toBe(true);
    expect(users.isOwn(socket)).toBe(true);
    client.destroy();
    socket.destroy();
    server.close();
  });

  it('from our own user is recognized after the client half-closes it', async () => {
    const { server, port, accepted } = await listen('127.0.0.1');
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const socket = await accepted();
    client.end('GET');
    await once(client, 'finish');
    expect(await new LocalUsers().ask(socket)).toBe(true);
    client.destroy();
    socket.destroy();
    server.close();
  });

  it('shares table reads with other connections', async () => {
    let reads = 0;
    const users = new LocalUsers((...table) => {
      reads++;
      return readOwners(...table);
    });
    const { server, port, accepted } = await listen('127.0.0.1');
    const clients = Array.from({ length: 100 }, () => connect(port, '127.0.0.1'));
    const sockets: Socket[] = [];
    while (sockets.length < clients.length) sockets.push(await accepted());
    const verdicts = await Promise.all(sockets.map((socket) => users.ask(socket)));
    expect(verdicts).toEqual(clients.map(() => true));
    // Sockets that one table misses are looked up in all three.
    expect(reads).toBeLessThanOrEqual(3);
    for (const socket of [...clients, ...sockets]) socket.destroy();
    server.close();
  });

  it('that the client has reset has no owner', async () => {
    const { server, port, accepted } = await listen('127.0.0.1');
    const client = connect(port, '127.0.0.1');
    const socket = await accepted();
    expect(socket.remotePort).toBe(client.localPort);
    client.resetAndDestroy();
    await once(client, 'close');
    expect(await new LocalUsers().ask(socket)).toBe(false);
    socket.destroy();
    server.close();
  });

  it('from another user stays theirs when our own user reuses the port', async (test) => {
    requireOtherUser(test);
    const { server, port, accepted } = await listen('127.0.0.1');
    const from = await freePort();
    const child = startAsOther(
      `const socket = require('node:net').connect({ port: ${port}, host: '127.0.0.1', localPort: ${from} });
      process.stdin.once('data', () => { socket.resetAndDestroy(); socket.once('close', () => process.exit()); });`,
    );
    const socket = await accepted();
    expect(socket.remotePort).toBe(from);
    child.stdin!.write('reset');
    await once(child, 'exit');
    const successor = connect({ port, host: '127.0.0.1', localPort: from });
    const second = await accepted();
    const users = new LocalUsers();
    expect([await users.ask(socket), await users.ask(second)]).toEqual([false, true]);
    for (const each of [successor, second, socket]) each.destroy();
    server.close();
  });
});
