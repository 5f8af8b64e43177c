import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { expect, it } from 'vitest';
import { connectHttp, textOf, toolNamesOnce } from '../helpers/clients.ts';
import { fixtureServer } from '../helpers/servers.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

it('a slow server does not hold up the list, and its tools follow when it is up', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard({
    mcpServers: { late: fixtureServer('late', witness.env('late')), notes: fixtureServer('notes') },
    switchboard: { discoveryWaitMs: 1_000 },
  });
  await using connected = await connectHttp(switchboard.url);
  const early = await toolNamesOnce(connected, (names) => names.includes('touch'));
  expect(early).not.toContain('late_tool');
  // Known by now and not waited for again, though it still has not answered.
  expect((await connected.client.callTool({ name: 'touch', arguments: {} })).isError).toBeUndefined();

  witness.tell('late', 'answer');
  await toolNamesOnce(connected, (names) => names.includes('late_tool'));
  expect(textOf(await connected.client.callTool({ name: 'late_tool' }))).toBe('better late than never');
});

it('a server that cannot be started is left out of the list, and shown with the reason', async () => {
  await using switchboard = await startSwitchboard({
    mcpServers: {
      missing: { command: 'no-such-program-anywhere' },
      crashing: { command: process.execPath, args: ['-e', 'console.error("out of luck"); process.exit(7)'] },
      unreachable: { url: 'http://127.0.0.1:9/mcp' },
      notes: fixtureServer('notes'),
    },
    switchboard: { discoveryWaitMs: 30_000 },
  });
  await using connected = await connectHttp(switchboard.url);
  const { tools } = await connected.client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['touch', 'refer', 'announce']);
  const reasonOf = async (server: string) =>
    (await switchboard.event(({ name, state }) => name === server && state === 'failed')).error;
  expect(await reasonOf('missing')).toContain('"no-such-program-anywhere" was not found');
  expect(await reasonOf('crashing')).toContain('exited with code 7; its last words: out of luck');
  expect(await reasonOf('unreachable')).toContain('ECONNREFUSED');
});

it('a server that is gone keeps its place in the list, and is started again by a call', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard({
    mcpServers: { recorder: fixtureServer('recorder', witness.env('recorder')) },
  });
  await using connected = await connectHttp(switchboard.url);
  const { client } = connected;
  const { pid } = JSON.parse(textOf(await client.callTool({ name: 'whoami' })));
  process.kill(pid, 'SIGKILL');
  await switchboard.event(({ name, state }) => name === 'recorder' && state === 'failed');
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('whoami');
  const answer = JSON.parse(textOf(await client.callTool({ name: 'whoami' })));
  expect(answer.pid).not.toBe(pid);
});

it('a call that is under way when its server dies gets an error that says so', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard({
    mcpServers: { recorder: fixtureServer('recorder', witness.env('recorder')) },
  });
  await using connected = await connectHttp(switchboard.url);
  const arrived = witness.sees('recorder', 'message', ({ method }) => method === 'tools/call');
  const failure = connected.client
    .callTool({ name: 'hold', arguments: { order: 'never' } })
    .catch((error: unknown) => error);
  process.kill((await arrived).pid, 'SIGKILL');
  expect(await failure).toBeInstanceOf(McpError);
  expect(await failure).toMatchObject({
    message: expect.stringContaining('was ended by SIGKILL'),
    data: { code: 'server_unavailable', server: 'recorder', signal: 'SIGKILL' },
  });
});
