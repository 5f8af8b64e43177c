import { expect, it } from 'vitest';
import { connectHttp, textOf, toolNamesOnce } from '../helpers/clients.ts';
import { freshDatabase } from '../helpers/database.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

it('the offers of servers are listed after a restart before they run, and verified when they do', async () => {
  await using database = await freshDatabase();
  await using witness = await Witness.open();
  // Each start has another folder, which would otherwise be the servers' working folder.
  const here = { cwd: '/' };
  const late = { ...fixtureServer('delays-handshake', witness.env('late')), ...here };
  const start = (servers: object, settings = {}) => startSwitchboard(servers, settings, { database });
  const servers = { late, notes: { ...fixtureServer('notes'), ...here } };
  {
    await using switchboard = await start(servers);
    await using client = await connectHttp(switchboard.url);
    witness.tell('late', 'answer');
    await toolNamesOnce(client, (names) => names.includes('late_tool') && names.includes('touch'));
    await switchboard.event(({ name, state }) => name === 'late' && state === 'ready');
  }

  {
    await using switchboard = await start(servers);
    await using client = await connectHttp(switchboard.url);
    expect(client.client.getInstructions()).toBe('## late\nBe patient.');
    const { tools } = await client.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['late_tool', 'touch', 'refer', 'announce']);
    expect((await client.client.listPrompts()).prompts).toMatchObject([{ name: 'summarize' }]);
    // A call waits for the server, which then offers more than before.
    const call = client.client.callTool({ name: 'late_tool', arguments: {} });
    await witness.severalOf('late', 'initialize', 2);
    witness.tell('late', 'more');
    witness.tell('late', 'answer');
    expect(textOf(await call)).toBe('better late than never');
    await toolNamesOnce(client, (names) => names.includes('later_tool'));
  }

  // Another server with that name is unknown.
  await using switchboard = await start(
    { late: { ...late, args: [...late.args, 'another'] } },
    { discoveryWaitMs: 1 },
  );
  await using client = await connectHttp(switchboard.url);
  expect((await client.client.listTools()).tools).toEqual([]);
});
