import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { RawModern } from './raw-modern.ts';

it('a client that disconnects at once leaves no subscription behind', async () => {
  await using switchboard = await startSwitchboard({}, { maxSessions: 5 });
  const { hostname, port } = new URL(switchboard.url);
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'subscriptions/listen',
    params: {
      notifications: { toolsListChanged: true },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  });
  const head = [
    'POST /mcp HTTP/1.1',
    `host: ${hostname}:${port}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2026-07-28',
    'mcp-method: subscriptions/listen',
    `content-length: ${body.length}`,
  ];
  for (let time = 0; time < 50; time++) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.resetAndDestroy());
    await once(socket, 'close');
  }
  const client = new RawModern(switchboard.url);
  for (;;) {
    const listen = await client.listen({ toolsListChanged: true }).catch((error: Error) => error);
    if (listen instanceof Error) continue;
    await listen.stream.cut();
    break;
  }
  expect(await client.toolNames()).toEqual([]);
});
