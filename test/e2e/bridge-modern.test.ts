import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it } from 'vitest';
import { startFixture } from '../conformance/processes.ts';
import { connectPeer } from '../eras/clients.ts';
import { textOf } from '../eras/messages.ts';
import type { Era } from '../eras/peer.ts';
import { runFeatures } from '../eras/run-features.ts';
import type { Scene } from '../eras/scene.ts';
import { bridgeProgram } from '../helpers/bridge.ts';
import { connectStdio } from '../helpers/clients.ts';
import { fixtureServer } from '../helpers/servers.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** Clients of the modern era that start `switchboard stdio`, and a server behind it. */
async function openBridgedScene(server: Era): Promise<Scene> {
  await using opening = new AsyncDisposableStack();
  const witness = opening.use(await Witness.open());
  const { baseUrl } = opening.use(
    await startSwitchboard({ mcpServers: { eras: fixtureServer(`eras/${server}`, witness.env('eras')) } }),
  );
  const whole = opening.move();
  return {
    clients: 'modern',
    connect: (answers) => connectPeer('modern', bridgeProgram(baseUrl), answers),
    uri: (own) => `resource://eras/${own}`,
    serverSees: (saw, key) => witness.sees('eras', saw, (sighting) => sighting.key === key),
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}

describe.each<Era>(['legacy', 'modern'])(
  'a modern client and a %s server, through switchboard stdio',
  (server) => {
    runFeatures('modern', () => openBridgedScene(server));
  },
);

describe('switchboard stdio, for a modern client,', () => {
  it('keeps its own instance of a server with isolation over several calls', async () => {
    const config = { mcpServers: { box: { ...fixtureServer('recorder'), isolation: 'session' } } };
    await using switchboard = await startSwitchboard(config);
    await using one = await connectPeer('modern', bridgeProgram(switchboard.baseUrl));
    await using other = await connectPeer('modern', bridgeProgram(switchboard.baseUrl));
    const pids: number[] = [];
    for (const peer of [one, other, one, other])
      pids.push(JSON.parse(textOf(await peer.callTool('whoami'))).pid);
    expect(pids.slice(2)).toEqual(pids.slice(0, 2));
    expect(pids[0]).not.toBe(pids[1]);
  });

  it('needs no headers for the arguments of a tool that wants some, which the server gets', async () => {
    await using server = await startFixture('modern');
    await using switchboard = await startSwitchboard({ mcpServers: { conformance: { url: server.url } } });
    await using peer = await connectPeer('modern', bridgeProgram(switchboard.baseUrl));
    const given = { region: 'Zürich', priority: 3, dryRun: false, query: 'x' };
    expect(textOf(await peer.callTool('test_custom_headers', given))).toBe(
      `Received: ${JSON.stringify(given)}`,
    );
  });
});

describe('switchboard stdio', () => {
  it('serves clients of the SDK, version 1, and of version 2 that choose the era themselves', async () => {
    await using switchboard = await startSwitchboard({ mcpServers: { eras: fixtureServer('eras/modern') } });
    const program = bridgeProgram(switchboard.baseUrl);
    await using first = await connectStdio(program);
    await using second = await connectChoosing(program);
    expect(second.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    for (const client of [first.client, second])
      expect(await client.callTool({ name: 'echo', arguments: { by: 'both' } })).toMatchObject({
        structuredContent: { by: 'both' },
      });
  });
});

async function connectChoosing(program: ReturnType<typeof bridgeProgram>): Promise<Client & AsyncDisposable> {
  const client = new Client({ name: 'choosing', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  await client.connect(new StdioClientTransport({ stderr: 'ignore', ...program }));
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}
