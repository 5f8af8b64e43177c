import { expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** A server that takes its time to start. The version is part of its environment: each is another process. */
async function startLate() {
  const witness = await Witness.open();
  const settings = { discoveryWaitMs: 1, connectTimeoutMs: 3_600_000, keepAliveMs: 50 };
  const servers = (version: string) => ({
    late: { ...fixtureServer('delays-handshake', witness.env(version)), startup: 'parallel' },
  });
  const switchboard = await startSwitchboard(servers('first'), settings);
  await witness.sees('first', 'initialize');
  witness.tell('first', 'answer');
  await switchboard.event(({ name, state }) => name === 'late' && state === 'ready');
  return {
    witness,
    session: await RawSession.open(switchboard.url),
    /** Comes back when the new process waits for the word to answer the handshake. */
    async edit(version: string): Promise<void> {
      await switchboard.configure(servers(version), settings);
      await witness.sees(version, 'initialize');
    },
    async [Symbol.asyncDispose]() {
      await switchboard.stop();
      await witness[Symbol.asyncDispose]();
    },
  };
}

it.concurrent('what a changed server offered stays listed, and can be called, before the new one is seen', async () => {
  await using late = await startLate();
  const { session, witness } = late;
  await late.edit('second');
  expect(await session.toolNames()).toEqual(['late_tool']);
  const call = session.callText('late_tool');
  expect(await session.toolNames()).toEqual(['late_tool']);
  witness.tell('second', 'answer');
  expect(await call).toBe('better late than never');
  expect(await witness.severalOf('second', 'tools/call', 1)).toHaveLength(1);
  expect(witness.seenBy('first', 'tools/call')).toEqual([]);
});

it.concurrent('a call between two edits waits for the server that comes with the second', async () => {
  await using late = await startLate();
  const { session, witness } = late;
  await late.edit('second');
  // It comes back with the first sign of life: the call is waiting by then.
  const stream = await session.openCall('late_tool', {}, 'token');
  await late.edit('third');
  await witness.sees('second', 'end');
  witness.tell('third', 'answer');
  const { result } = await stream.message(({ id }) => id !== undefined);
  expect(result).toEqual({ content: [{ type: 'text', text: 'better late than never' }] });
  expect(await witness.severalOf('third', 'tools/call', 1)).toHaveLength(1);
  expect(witness.seenBy('second', 'tools/call')).toEqual([]);
});

it.concurrent.each(['shared', 'session'])(
  'what a client follows at a changed server is followed at the new one (isolation: %s) [G13]',
  async (isolation) => {
    await using witness = await Witness.open();
    const servers = (version: string) => ({
      notes: { ...fixtureServer('notes', witness.env(version)), isolation },
    });
    await using switchboard = await startSwitchboard(servers('first'));
    const session = await RawSession.open(switchboard.url);
    const standing = await session.listen();
    const uri = 'resource://notes/note://todo';
    expect(await session.request('resources/subscribe', { uri })).toMatchObject({ result: {} });
    await switchboard.configure(servers('second'));
    await witness.sees('second', 'message', ({ method }) => method === 'resources/subscribe');
    await session.call('touch', { uri: 'note://todo' });
    const { params } = await standing.message(({ method }) => method === 'notifications/resources/updated');
    expect(params).toEqual({ uri });
    expect(witness.seenBy('first', 'message').map(({ method }) => method)).not.toContain('tools/call');
  },
);
