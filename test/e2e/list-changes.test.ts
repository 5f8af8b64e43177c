import { describe, expect, it } from 'vitest';
import { type ConnectedClient, connectHttp, connectSse, toolNamesOnce } from '../helpers/clients.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const kinds = ['tools', 'resources', 'prompts'] as const;
const announces = (kind: string) => (notification: { method: string }) =>
  notification.method === `notifications/${kind}/list_changed`;

describe('a server whose lists change', () => {
  let switchboard: RunningSwitchboard;
  let caller: ConnectedClient;
  let listener: ConnectedClient;

  setUp(async (use) => {
    switchboard = use(await startSwitchboard({ growing: fixtureServer('grows-lists') }));
    caller = use(await connectHttp(switchboard.url));
    listener = use(await connectSse(`${switchboard.baseUrl}/sse`));
    // The first list discovers the server, which is a change too.
    await caller.client.listTools();
    for (const { notifications } of [caller, listener]) await notifications.first(announces('tools'));
  });

  it('announces a tool that it adds to connected clients, and lists it [G3]', async () => {
    const announced = [caller, listener].map(({ notifications }) => notifications.next(announces('tools')));
    await caller.client.callTool({ name: 'grow', arguments: { name: 'added_later' } });
    await Promise.all(announced);
    for (const { client } of [caller, listener]) {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(['grow', 'added_later']);
    }
    // Every client must have this notification before the next test counts its own.
    const announcedAgain = [caller, listener].map(({ notifications }) =>
      notifications.next(announces('tools')),
    );
    await caller.client.callTool({ name: 'added_later', arguments: { name: 'by_the_new_one' } });
    await Promise.all(announcedAgain);
    await toolNamesOnce(listener, (names) => names.includes('by_the_new_one'));
  });

  it('sends every client one notification per list, however often it changes [G12]', async () => {
    // Notifications arrive in order, so this change marks the end of the earlier ones.
    const quietAfter = async (name: string) => {
      const arrived = [caller, listener].map(({ notifications }) => notifications.next(announces('tools')));
      await caller.client.callTool({ name: 'grow', arguments: { name } });
      await Promise.all(arrived);
    };
    const counts = ({ notifications }: ConnectedClient) =>
      Object.fromEntries(kinds.map((kind) => [kind, notifications.items.filter(announces(kind)).length]));

    await quietAfter('before');
    const before = [caller, listener].map(counts);
    const announced = [caller, listener].flatMap(({ notifications }) =>
      kinds.map((kind) => notifications.next(announces(kind))),
    );
    await caller.client.callTool({
      name: 'grow',
      arguments: { name: 'loud', kinds: ['tools', 'resources', 'prompts'], times: 20 },
    });
    await Promise.all(announced);
    await quietAfter('after');

    [caller, listener].forEach((connected, index) => {
      const { tools, resources, prompts } = before[index]!;
      expect(counts(connected)).toEqual({
        tools: tools! + 2,
        resources: resources! + 1,
        prompts: prompts! + 1,
      });
    });
  });

  it('adds its new resources and prompts to the lists of every client [G12]', async () => {
    for (const { client } of [caller, listener]) {
      expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual([
        'resource://growing/grown://loud',
      ]);
      expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['loud']);
    }
  });
});

it('a change of any server notifies every client [G12]', async () => {
  await using switchboard = await startSwitchboard({
    first: fixtureServer('grows-lists'),
    second: fixtureServer('grows-lists'),
    third: fixtureServer('grows-lists'),
  });
  await using one = await connectHttp(switchboard.url);
  await using other = await connectHttp(switchboard.url);
  for (const server of ['first', 'second', 'third']) {
    await one.client.callTool({ name: `${server}__grow`, arguments: { name: `new_of_${server}` } });
    for (const client of [one, other]) {
      await toolNamesOnce(client, (names) => names.includes(`new_of_${server}`));
    }
  }
});

it('a server that joins or leaves the configuration changes the lists [G12]', async () => {
  const growing = fixtureServer('grows-lists');
  await using switchboard = await startSwitchboard({ growing });
  await using connected = await connectHttp(switchboard.url);
  await toolNamesOnce(connected, (names) => names.includes('grow'));
  await switchboard.configure({ growing, notes: fixtureServer('notes') });
  await toolNamesOnce(connected, (names) => names.includes('grow') && names.includes('touch'));
  await switchboard.configure({ notes: fixtureServer('notes') });
  await toolNamesOnce(connected, (names) => !names.includes('grow') && names.includes('touch'));
});
