import { expect, it } from 'vitest';
import { connectHttp, textOf, toolNamesOnce } from '../helpers/clients.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const workNotes = fixtureServer('notes', { NOTES_OF: 'work' });
const homeNotes = fixtureServer('notes', { NOTES_OF: 'home' });
const growing = fixtureServer('grows-lists');
const servers = { work: workNotes, home: homeNotes, growing };

const cases = [
  {
    naming: 'on-conflict',
    settings: {},
    listed: [
      'work__touch',
      'work__refer',
      'work__announce',
      'home__touch',
      'home__refer',
      'home__announce',
      'grow',
    ],
    callable: { growing__grow: 'grown', work__announce: 'done' },
  },
  {
    naming: 'always',
    settings: { naming: 'always', separator: '-' },
    listed: [
      'work-touch',
      'work-refer',
      'work-announce',
      'home-touch',
      'home-refer',
      'home-announce',
      'growing-grow',
    ],
    callable: { 'growing-grow': 'grown', 'home-announce': 'done' },
  },
  {
    naming: 'last-wins',
    settings: { naming: 'last-wins' },
    listed: ['touch', 'refer', 'announce', 'grow'],
    callable: { announce: 'done', work__announce: 'done', home__announce: 'done', growing__grow: 'grown' },
  },
];

it.concurrent.each(cases)(
  'naming $naming lists and calls tools by its rule [G2]',
  async ({ settings, listed, callable }) => {
    await using switchboard = await startSwitchboard(servers, settings);
    await using connected = await connectHttp(switchboard.url);
    const { client } = connected;
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(listed);
    for (const [name, answer] of Object.entries(callable)) {
      const result = await client.callTool({ name, arguments: { name: 'more' } });
      expect(textOf(result), name).toContain(answer);
    }
  },
);

it.concurrent('qualified calls reach only the named server [G2]', async () => {
  await using witness = await Witness.open();
  const noteOf = (name: string) => fixtureServer('notes', { ...witness.env(name), NOTES_OF: name });
  await using switchboard = await startSwitchboard({
    work: noteOf('work'),
    home: { ...noteOf('home'), prefix: 'private' },
  });
  await using connected = await connectHttp(switchboard.url);
  const { client } = connected;
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['work__touch', 'private__touch']));
  expect(names).not.toContain('home__touch');

  await client.callTool({ name: 'private__touch', arguments: { uri: 'note://todo' } });
  const calls = (who: string) =>
    witness.seenBy(who, 'message').filter(({ method }) => method === 'tools/call');
  await witness.sees('home', 'message', ({ method }) => method === 'tools/call');
  expect(calls('home').map(({ params }) => params)).toMatchObject([{ name: 'touch' }]);
  expect(calls('work')).toEqual([]);
});

it.concurrent('last-wins warns about hidden names, and calls the later tool [G2]', async () => {
  await using switchboard = await startSwitchboard(servers, { naming: 'last-wins' });
  await using connected = await connectHttp(switchboard.url);
  await connected.client.listTools();
  const warning = await switchboard.event(({ event }) => event === 'warning');
  expect(warning.message).toContain('hidden');
  const { content } = await connected.client.callTool({
    name: 'refer',
    arguments: { uri: 'note://todo' },
  });
  expect(content).toContainEqual(
    expect.objectContaining({ resource: expect.objectContaining({ text: 'note://todo of home' }) }),
  );
});

it.concurrent('a new prefix and separator apply at run time, and clients are notified [G2]', async () => {
  await using switchboard = await startSwitchboard(servers);
  await using connected = await connectHttp(switchboard.url);
  await connected.client.listTools();
  await switchboard.configure({ ...servers, work: { ...workNotes, prefix: 'office' } }, { separator: '-' });
  const names = await toolNamesOnce(connected, (listed) => listed.includes('office-touch'));
  expect(names).toEqual(expect.arrayContaining(['office-touch', 'home-touch', 'grow']));
});

it.concurrent('names that are too long for model APIs are shortened, stay unique and can be called [G2]', async () => {
  const long = 'a-server-with-a-name-that-goes-on-and-on';
  await using switchboard = await startSwitchboard(
    { [`${long}-1`]: growing, [`${long}-2`]: growing },
    { naming: 'always', separator: '_and_so_' },
  );
  await using connected = await connectHttp(switchboard.url);
  const { client } = connected;
  const isCut = (name: string) => name.includes('_xxx');
  await client.callTool({ name: `${long}-1_and_so_grow`, arguments: { name: 'x'.repeat(40) } });
  const names = await toolNamesOnce(connected, (listed) => listed.some(isCut));
  const cut = names.find(isCut);
  expect(cut).toMatch(/^[A-Za-z0-9_-]{64}$/);
  expect(textOf(await client.callTool({ name: cut!, arguments: { name: 'again' } }))).toContain('grown');
});

it.concurrent('names as-is keeps dots and colons, and adapted names can still be called [P8]', async () => {
  const names = 'as-is';
  await using switchboard = await startSwitchboard({ growing }, { names });
  await using connected = await connectHttp(switchboard.url);
  const { client } = connected;
  for (const name of ['b-one.x', 'née']) await client.callTool({ name: 'grow', arguments: { name } });
  const listed = await toolNamesOnce(connected, (all) => all.length === 3);
  expect(listed).toEqual(['grow', 'b-one.x', 'n_e']);
  for (const name of ['b-one.x', 'b-one_x', 'growing__b-one_x', 'n_e']) {
    expect(textOf(await client.callTool({ name, arguments: { name: 'more', kinds: [] } }))).toBe(
      'grown by more',
    );
  }
  await switchboard.configure({ growing });
  expect(await toolNamesOnce(connected, (all) => !all.includes('b-one.x'))).toEqual([
    'grow',
    'b-one_x',
    'n_e',
  ]);
});
