import { expect, it } from 'vitest';
import { connectHttp, textOf, toolNamesOnce } from '../helpers/clients.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

it('a listed name keeps working for a client when another server adds the same name', async () => {
  const notes = (of: string) => fixtureServer('notes', { NOTES_OF: of });
  const mcpServers = { go: notes('go') };
  await using switchboard = await startSwitchboard(mcpServers);
  await using early = await connectHttp(switchboard.url);
  const prompt = async () => {
    const { messages } = await early.client.getPrompt({ name: 'summarize' });
    return (messages[0]!.content as { text: string }).text;
  };
  await early.client.listPrompts();
  expect(await toolNamesOnce(early, (names) => names.includes('touch'))).toContain('touch');

  await switchboard.configure({ ...mcpServers, slow: notes('slow') });
  const names = await toolNamesOnce(early, (listed) => listed.includes('slow__touch'));
  expect(names).toContain('go__touch');
  expect(names).not.toContain('touch');
  // A client that saw the name, and one that never listed.
  expect(textOf(await early.client.callTool({ name: 'announce', arguments: {} }))).toBe('done');
  expect(await prompt()).toBe('Notes of go');
  await using hasty = await connectHttp(switchboard.url);
  expect(textOf(await hasty.client.callTool({ name: 'announce', arguments: {} }))).toBe('done');

  // A later client never saw the name.
  const late = await RawSession.open(switchboard.url);
  await late.toolNames();
  const refused = await late.request('tools/call', { name: 'announce', arguments: {} });
  expect(refused).toMatchObject({
    error: { message: 'Unknown tool: announce. Did you mean go__announce or slow__announce?' },
  });
  await late.end();

  // When its server is removed, the name means the tool of the other.
  await switchboard.configure({ slow: notes('slow') });
  await toolNamesOnce(early, (listed) => listed.includes('touch'));
  expect(await prompt()).toBe('Notes of slow');
});

it('an unknown name returns similar names, and blames no unrelated server', async () => {
  await using switchboard = await startSwitchboard({
    home: fixtureServer('notes'),
    broken: { command: 'false' },
  });
  const session = await RawSession.open(switchboard.url);
  await session.toolNames();
  const messageOf = async (method: string, name: string) => {
    const { error } = await session.request(method, { name, arguments: {} });
    return error?.message;
  };
  expect(await messageOf('tools/call', 'Announce')).toBe('Unknown tool: Announce. Did you mean announce?');
  expect(await messageOf('tools/call', 'work__announce')).toBe(
    'Unknown tool: work__announce. Did you mean announce?',
  );
  expect(await messageOf('prompts/get', 'Summarize')).toBe(
    'Unknown prompt: Summarize. Did you mean summarize?',
  );
  expect(await messageOf('tools/call', 'anounce')).toBe('Unknown tool: anounce. Did you mean announce?');
  expect(await messageOf('tools/call', 'home__nothing')).toBe('Unknown tool: home__nothing');
  expect(await messageOf('tools/call', 'nothing')).toBe(
    'Unknown tool: nothing (not known yet: what "broken" offers)',
  );
  await session.end();
});
