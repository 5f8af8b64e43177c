import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it } from 'vitest';
import { startFixture } from '../conformance/processes.ts';
import { openBridgedScene } from '../eras/bridged-scene.ts';
import { connectPeer } from '../eras/clients.ts';
import { textOf } from '../eras/messages.ts';
import { runFeatures } from '../eras/run-features.ts';
import { bridgeProgram } from '../helpers/bridge.ts';
import { connectStdio } from '../helpers/clients.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

describe('a modern client and a legacy server, through switchboard stdio', () => {
  runFeatures('modern', () => openBridgedScene('legacy'), /is called|tool asks the user|is cancelled/);
});

describe('switchboard stdio with a modern client', () => {
  it('keeps one isolated server instance over several calls', async () => {
    const box = { ...fixtureServer('reports-messages'), isolation: 'session' };
    await using switchboard = await startSwitchboard({ box });
    await using one = await connectPeer('modern', bridgeProgram(switchboard.baseUrl));
    await using other = await connectPeer('modern', bridgeProgram(switchboard.baseUrl));
    const pids: number[] = [];
    for (const peer of [one, other, one, other])
      pids.push(JSON.parse(textOf(await peer.callTool('whoami'))).pid);
    expect(pids.slice(2)).toEqual(pids.slice(0, 2));
    expect(pids[0]).not.toBe(pids[1]);
  });

  it('needs no argument headers for a tool that requires them, and the server gets them', async () => {
    await using server = await startFixture('modern');
    await using switchboard = await startSwitchboard({ conformance: { url: server.url } });
    await using peer = await connectPeer('modern', bridgeProgram(switchboard.baseUrl));
    const given = { region: 'Zürich', priority: 3, dryRun: false, query: 'x' };
    expect(textOf(await peer.callTool('test_custom_headers', given))).toBe(
      `Received: ${JSON.stringify(given)}`,
    );
  });
});

describe('switchboard stdio', () => {
  it('serves clients of SDK version 1, and of version 2 with automatic era selection', async () => {
    await using switchboard = await startSwitchboard({ eras: fixtureServer('eras/modern') });
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
