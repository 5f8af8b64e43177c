import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bridgeProgram, modernRequest, type RawBridge, startBridge } from '../helpers/bridge.ts';
import { freePort } from '../helpers/free-port.ts';
import { isRunning, untilGone } from '../helpers/processes.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const subscriptionKey = 'io.modelcontextprotocol/subscriptionId';
const acknowledged = 'notifications/subscriptions/acknowledged';
const updated = 'notifications/resources/updated';
const noteUri = 'test://note';

async function openHome(servers: Record<string, object>) {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-bridge-'));
  const mcpServers = { ...servers, recorder: fixtureServer('reports-messages') };
  // A server that starts slowly must not change a list.
  const config = { mcpServers, switchboard: { discoveryWaitMs: 60_000 } };
  await writeFile(join(folder, 'mcp.json'), JSON.stringify(config));
  const program = bridgeProgram(`http://127.0.0.1:${await freePort()}`, folder);
  const started = new Set<number>();
  return {
    bridge: () => startBridge(program),
    /** The pid of the Switchboard that serves this bridge. */
    async owner(bridge: RawBridge, id: string): Promise<number> {
      const owner = (await called(bridge, id, 'whoami')).parent as number;
      started.add(owner);
      return owner;
    },
    async [Symbol.asyncDispose]() {
      for (const pid of started) if (isRunning(pid)) process.kill(pid, 'SIGTERM');
      for (const pid of started) await untilGone(pid);
      await rm(folder, { recursive: true });
    },
  };
}

async function called(bridge: RawBridge, id: string, name: string): Promise<Record<string, unknown>> {
  bridge.say(modernRequest(id, 'tools/call', { name }));
  const { result, error } = await bridge.answerTo(id);
  expect(error).toBe(undefined);
  return JSON.parse((result as { content: { text: string }[] }).content[0]!.text);
}

describe('switchboard stdio with a modern client, when Switchboard restarts', () => {
  it('continues with the next request', async () => {
    const servers = { recorder: fixtureServer('reports-messages') };
    const args = ['--port', String(await freePort())];
    const before = await startSwitchboard(servers, {}, { args });
    await using bridge = startBridge(bridgeProgram(before.baseUrl));
    const { parent } = await called(bridge, 'before', 'whoami');
    await before.stop();
    await using _after = await startSwitchboard(servers, {}, { args });
    expect((await called(bridge, 'after', 'whoami')).parent).not.toBe(parent);
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'fails calls that were already sent, and does not repeat them (%s)',
    async (signal) => {
      await using witness = await Witness.open();
      const before = await startSwitchboard({
        recorder: fixtureServer('reports-messages', witness.env('recorder')),
      });
      await using bridge = startBridge(bridgeProgram(before.baseUrl));
      bridge.say(modernRequest(1, 'tools/call', { name: 'hold', arguments: { order: 'never' } }));
      await witness.sees('recorder', 'message', ({ method }) => method === 'tools/call');
      before.process.kill(signal);
      await before.stop();
      expect((await bridge.answerTo(1)).error).toMatchObject({
        code: -32603,
        message: expect.stringContaining(signal === 'SIGTERM' ? 'Switchboard is stopping' : before.baseUrl),
      });
      const calls = witness.seenBy('recorder', 'message').filter(({ method }) => method === 'tools/call');
      expect(calls).toHaveLength(1);
    },
  );

  it('starts a Switchboard and resends requests that reached none', async () => {
    await using home = await openHome({});
    await using bridge = home.bridge();
    const before = await home.owner(bridge, 'before');
    process.kill(before, 'SIGTERM');
    await untilGone(before);
    const owners = await Promise.all(['one', 'two'].map((id) => home.owner(bridge, id)));
    expect(new Set(owners).size).toBe(1);
    expect(owners).not.toContain(before);
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)('renews subscriptions (%s)', async (signal) => {
    await using home = await openHome({ eras: fixtureServer('eras/modern') });
    await using bridge = home.bridge();
    const notifications = {
      toolsListChanged: true,
      resourcesListChanged: true,
      resourceSubscriptions: [noteUri],
    };
    bridge.say(modernRequest('changes', 'subscriptions/listen', { notifications }));
    await bridge.received.first(({ method }) => method === acknowledged);
    const before = await home.owner(bridge, 'before');
    const told = ['tools', 'resources'].map((list) =>
      bridge.received.next(({ method }) => method === `notifications/${list}/list_changed`),
    );
    process.kill(before, signal);
    for (const { params } of await Promise.all(told)) {
      expect(params).toEqual({ _meta: { [subscriptionKey]: 'changes' } });
    }
    expect(await home.owner(bridge, 'after')).not.toBe(before);
    bridge.say(modernRequest('touch', 'tools/call', { name: 'touch' }));
    const { params } = await bridge.received.first(({ method }) => method === updated);
    expect(params).toEqual({ uri: noteUri, _meta: { [subscriptionKey]: 'changes' } });
    const all = await bridge.end();
    expect(all.filter(({ method }) => method === acknowledged)).toHaveLength(1);
    expect(all.filter(({ id }) => id === 'changes')).toEqual([]);
  });
});
