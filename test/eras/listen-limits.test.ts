import { expect, it } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { ModernPeer, tool } from './modern-peer.ts';
import { RawModern } from './raw-modern.ts';

const lists = { 'tools/list': () => ({ tools: [tool('one')] }) };
const changes = { toolsListChanged: true };
const toolsChanged = 'notifications/tools/list_changed';

it('subscriptions are limited like sessions', async () => {
  await using switchboard = await startSwitchboard({}, { maxSessions: 2 });
  const client = new RawModern(switchboard.url);
  const [first, second] = [await client.listen(changes), await client.listen(changes)];
  const { status, message } = await client.send('subscriptions/listen', { notifications: changes });
  expect({ status, error: message?.error }).toMatchObject({
    status: 503,
    error: { data: { code: 'too_many_sessions' }, message: expect.stringContaining('maxSessions') },
  });
  const closed = first.stream.cut();
  await closed;
  // A closed connection is detected only when its end has arrived.
  for (;;) {
    const again = await client.listen(changes).catch(() => undefined);
    if (again !== undefined) break;
  }
  await second.stream.cut();
});

it('a large subscription is rejected, because it would be stored', async () => {
  await using switchboard = await startSwitchboard({});
  const client = new RawModern(switchboard.url);
  const notifications = { ...changes, resourceSubscriptions: ['note:'.padEnd(256 * 1024, 'x')] };
  await expect(client.listen(notifications)).rejects.toThrow('is no stream');
  const { error } = await client.request('subscriptions/listen', { notifications });
  expect(error?.message).toContain('at most 262144 bytes');
});

it('the limit also holds for subscriptions that start during discovery', async () => {
  const asked = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  await using peer = await ModernPeer.start({
    slow: {
      answer(_request, { response, message }) {
        asked.resolve();
        const result = { resultType: 'complete', ttlMs: 0, cacheScope: 'private', tools: [] };
        const body = JSON.stringify({ jsonrpc: '2.0', id: message!.id, result });
        void go.promise.then(() => response.writeHead(200, { 'content-type': 'application/json' }).end(body));
        return undefined;
      },
    },
  });
  await using switchboard = await startSwitchboard(peer.configuration(), { maxSessions: 1 });
  const client = new RawModern(switchboard.url);
  const sent = [1, 2, 3].map(() => client.begin('subscriptions/listen', { notifications: changes }));
  await asked.promise;
  // This request is accepted after all of them.
  await new RawModern(switchboard.url).send('tasks/get', { taskId: 'x' });
  go.resolve();
  const types = await Promise.all(
    sent.map(async ({ response }) => String((await response).headers['content-type'])),
  );
  for (const { close } of sent) close();
  expect(types.filter((type) => type.startsWith('text/event-stream'))).toHaveLength(1);
});

it('a subscription gets changes of servers that are added and removed', async () => {
  await using peer = await ModernPeer.start({ one: { lists }, two: { lists } });
  const { one, two } = peer.configuration();
  await using switchboard = await startSwitchboard({ one });
  const client = new RawModern(switchboard.url);
  const { stream } = await client.listen(changes);
  const namesOnce = async (fits: (names: string[]) => boolean) => {
    for (;;) {
      const changed = stream.events.next(({ message }) => message?.method === toolsChanged);
      const names = await client.toolNames();
      if (fits(names)) return;
      await changed;
    }
  };
  await switchboard.configure({ one, two });
  await namesOnce((names) => names.includes('two__one'));
  await switchboard.configure({ two });
  await namesOnce((names) => names.length === 1);
  await stream.cut();
});

it('a subscription to a resource survives an outage of its server', async () => {
  const resources = {
    capabilities: { resources: { subscribe: true } },
    lists: {
      'resources/list': () => ({ resources: [{ uri: 'note:a', name: 'a' }] }),
      'resources/templates/list': () => ({ resourceTemplates: [] }),
    },
  };
  await using peer = await ModernPeer.start({ one: resources, two: { lists } });
  const { one, two } = peer.configuration();
  const settings = { startup: 'parallel' };
  await using switchboard = await startSwitchboard({ one, two }, settings);
  const client = new RawModern(switchboard.url);
  const { stream, honoured } = await client.listen({ resourceSubscriptions: ['note:a'] });
  expect(honoured).toEqual({ resourceSubscriptions: ['note:a'] });
  const [upstream] = peer.listens.items;
  await switchboard.configure({ two }, settings);
  await peer.unlistens.first((listen) => listen === upstream);
  const again = peer.listens.next(() => true);
  await switchboard.configure({ one, two }, settings);
  await again;
  peer.notify('one', 'notifications/resources/updated', { uri: 'note:a' });
  await stream.message(({ method }) => method === 'notifications/resources/updated');
  await stream.cut();
});

it('a client that does not accept streams gets an error', async () => {
  await using switchboard = await startSwitchboard({});
  const client = new RawModern(switchboard.url, { headers: { accept: 'application/json' } });
  const params = { notifications: changes };
  const { close, response } = client.begin('subscriptions/listen', params);
  await client.send('tools/list');
  const stopped = switchboard.stop().then(() => 'left waiting');
  const answered = response.then(({ statusCode }) => statusCode).catch(() => stopped);
  const outcome = await Promise.race([answered, stopped]);
  close();
  expect(outcome).toBe(406);
});
