import { expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** A server that starts slowly. The version is in its environment, so each version is another process. */
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
    /** Resolves when the new process is in its handshake. */
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

it.concurrent('the offer of a changed server stays listed and callable before the new process is ready', async () => {
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

it.concurrent('a call between two edits waits for the server of the second edit', async () => {
  await using late = await startLate();
  const { session, witness } = late;
  await late.edit('second');
  // The keep-alive comment proves that the call waits.
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
  'subscriptions to a changed server move to the new process (isolation: %s) [G13]',
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
