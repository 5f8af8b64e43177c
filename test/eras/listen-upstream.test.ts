import { expect, it } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { type ModernBehaviour, ModernPeer, tool } from './modern-peer.ts';
import { RawModern } from './raw-modern.ts';

const wanted = 'resourceSubscriptions';

const notes: ModernBehaviour = {
  capabilities: { resources: { subscribe: true } },
  lists: {
    'resources/list': () => ({ resources: ['note:a', 'note:b'].map((uri) => ({ uri, name: uri })) }),
    'resources/templates/list': () => ({ resourceTemplates: [] }),
  },
};

it('a late acknowledgement from a replaced server closes its subscription', async () => {
  const later = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const isFirst = (filter: Record<string, unknown>) => (filter[wanted] as unknown[]).length === 1;
  await using peer = await ModernPeer.start({
    slow: {
      ...notes,
      async listening(filter) {
        if (!isFirst(filter)) return;
        asked.resolve();
        await later.promise;
      },
    },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  const client = new RawModern(switchboard.url);
  await client.request('resources/list');
  const first = client.listen({ [wanted]: ['note:a'] });
  await asked.promise;
  const second = await client.listen({ [wanted]: ['note:b'] });
  later.resolve();
  await first;
  await peer.unlistens.first(({ filter }) => isFirst(filter));
  expect(peer.listens.items.filter(({ isOpen }) => isOpen)).toHaveLength(1);
  await second.stream.cut();
  await (await first).stream.cut();
});

it('a list change before the server acknowledges the subscription is not lost', async () => {
  const listed = Promise.withResolvers<void>();
  let tools = [tool('first')];
  await using peer = await ModernPeer.start({
    slow: {
      capabilities: { tools: { listChanged: true } },
      lists: {
        'tools/list': () => {
          setImmediate(listed.resolve);
          return { tools };
        },
      },
      async listening() {
        await listed.promise;
        tools = [tool('first'), tool('second')];
      },
    },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  const client = new RawModern(switchboard.url);
  while ((await client.toolNames()).length < 2);
});
