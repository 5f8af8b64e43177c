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

/** A home in which a bridge finds what it starts Switchboard with, and which ends with all that were started there. */
async function openHome(servers: Record<string, object>) {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-bridge-'));
  const mcpServers = { ...servers, recorder: fixtureServer('reports-messages') };
  // So that no list changes only because a server is slow to start.
  const config = { mcpServers, switchboard: { discoveryWaitMs: 60_000 } };
  await writeFile(join(folder, 'mcp.json'), JSON.stringify(config));
  const program = bridgeProgram(`http://127.0.0.1:${await freePort()}`, folder);
  const started = new Set<number>();
  return {
    bridge: () => startBridge(program),
    /** The process of the Switchboard that answers this bridge now. */
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

/** What a tool of the recorder says of itself. */
async function called(bridge: RawBridge, id: string, name: string): Promise<Record<string, unknown>> {
  bridge.say(modernRequest(id, 'tools/call', { name }));
  const { result, error } = await bridge.answerTo(id);
  expect(error).toBe(undefined);
  return JSON.parse((result as { content: { text: string }[] }).content[0]!.text);
}

describe('for a modern client, when Switchboard is restarted, switchboard stdio', () => {
  it('goes on with the next request', async () => {
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
    'fails what had reached it, and does not call again (%s)',
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

  it('sends again what reached nobody, to one that it starts', async () => {
    await using home = await openHome({});
    await using bridge = home.bridge();
    const before = await home.owner(bridge, 'before');
    process.kill(before, 'SIGTERM');
    await untilGone(before);
    const owners = await Promise.all(['one', 'two'].map((id) => home.owner(bridge, id)));
    expect(new Set(owners).size).toBe(1);
    expect(owners).not.toContain(before);
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)('asks for subscriptions again (%s)', async (signal) => {
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
