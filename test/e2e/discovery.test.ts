import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { expect, it } from 'vitest';
import { connectHttp, textOf, toolNamesOnce } from '../helpers/clients.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

it.concurrent('a slow server delays at most one list, and its tools follow when it is ready', async () => {
  await using witness = await Witness.open();
  const mcpServers = {
    late: fixtureServer('delays-handshake', witness.env('late')),
    notes: fixtureServer('notes'),
  };
  await using switchboard = await startSwitchboard(mcpServers, { discoveryWaitMs: 1_000 });
  await using connected = await connectHttp(switchboard.url);
  const early = await toolNamesOnce(connected, (names) => names.includes('touch'));
  expect(early).not.toContain('late_tool');

  // The server has not answered yet: a list that waited for it again would exceed the test timeout.
  await switchboard.configure(mcpServers, { discoveryWaitMs: 3_600_000 });
  await switchboard.event(({ event }) => event === 'configuration');
  expect((await connected.client.listTools()).tools.map(({ name }) => name)).toEqual(early);
  expect(textOf(await connected.client.callTool({ name: 'touch', arguments: {} }))).toBe('done');

  witness.tell('late', 'answer');
  await toolNamesOnce(connected, (names) => names.includes('late_tool'));
  expect(textOf(await connected.client.callTool({ name: 'late_tool' }))).toBe('better late than never');
});

it.concurrent('a call before any list finds a server that starts slowly, and can be cancelled', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard(
    { late: fixtureServer('delays-handshake', witness.env('late')) },
    { discoveryWaitMs: 3_600_000 },
  );
  const session = await RawSession.open(switchboard.url);
  const call = (id: string) =>
    session.request('tools/call', { name: 'late_tool', arguments: { of: id } }, id);
  const cancelled = call('cancelled').catch((error: unknown) => error);
  await witness.sees('late', 'start');
  await session.notify('notifications/cancelled', { requestId: 'cancelled' });
  const kept = call('kept');
  expect(String(await cancelled)).toContain('HTTP 202');
  witness.tell('late', 'answer');
  expect(await kept).toMatchObject({ id: 'kept', result: { content: [{ text: 'better late than never' }] } });
  await witness.sees('late', 'tools/call');
  const calls = witness.seenBy('late', 'tools/call');
  expect(calls.map(({ params }) => params)).toMatchObject([{ arguments: { of: 'kept' } }]);
});

it.concurrent('a server that cannot start is left out of the list, and its status shows the reason', async () => {
  await using switchboard = await startSwitchboard({
    missing: { command: 'no-such-program-anywhere' },
    crashing: { command: process.execPath, args: ['-e', 'console.error("out of luck"); process.exit(7)'] },
    unreachable: { url: 'http://127.0.0.1:9/mcp' },
    notes: fixtureServer('notes'),
  });
  await using connected = await connectHttp(switchboard.url);
  const { tools } = await connected.client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['touch', 'refer', 'announce']);
  const reasonOf = async (server: string) =>
    (await switchboard.event(({ name, state }) => name === server && state === 'backing_off')).error;
  expect(await reasonOf('missing')).toContain('"no-such-program-anywhere" was not found');
  expect(await reasonOf('crashing')).toContain('exited with code 7; last output: out of luck');
  expect(await reasonOf('unreachable')).toContain('ECONNREFUSED');
});

it.concurrent('a server that exits stays in the list, and the next call restarts it', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard({
    recorder: fixtureServer('reports-messages', witness.env('recorder')),
  });
  await using connected = await connectHttp(switchboard.url);
  const { client } = connected;
  const { pid } = JSON.parse(textOf(await client.callTool({ name: 'whoami' })));
  process.kill(pid, 'SIGKILL');
  await switchboard.event(({ name, state }) => name === 'recorder' && state === 'backing_off');
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('whoami');
  const answer = JSON.parse(textOf(await client.callTool({ name: 'whoami' })));
  expect(answer.pid).not.toBe(pid);
});

it.concurrent('a call in flight when its server dies fails with that reason', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard({
    recorder: fixtureServer('reports-messages', witness.env('recorder')),
  });
  await using connected = await connectHttp(switchboard.url);
  const arrived = witness.sees('recorder', 'message', ({ method }) => method === 'tools/call');
  const failure = connected.client
    .callTool({ name: 'hold', arguments: { order: 'never' } })
    .catch((error: unknown) => error);
  process.kill((await arrived).pid, 'SIGKILL');
  expect(await failure).toBeInstanceOf(McpError);
  expect(await failure).toMatchObject({
    message: expect.stringContaining('was killed by SIGKILL'),
    data: { code: 'server_unavailable', server: 'recorder', signal: 'SIGKILL' },
  });
});

it.concurrent('a tool of a server that never started fails with the error of that server', async () => {
  await using switchboard = await startSwitchboard({
    broken: { command: 'no-such-command' },
    box: fixtureServer('toolbox'),
  });
  const session = await RawSession.open(switchboard.url);
  await session.toolNames();
  expect(await session.call('broken__work')).toMatchObject({
    error: {
      message: expect.stringMatching(/^Server "broken" .*"no-such-command" was not found/),
      data: { code: 'server_unavailable', server: 'broken' },
    },
  });
  expect(await session.call('work')).toMatchObject({
    error: {
      message: 'Unknown tool: work (not known yet: what "broken" offers)',
      data: { absent: ['broken'] },
    },
  });
});
