import { expect, it } from 'vitest';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { textIn } from './asked.ts';
import { ListenedServer } from './listened-server.ts';
import { RawModern } from './raw-modern.ts';

const settings = { backoffFirstMs: 10, backoffMaxMs: 20, breakerFailures: 1_000 };
const TOOLS = 'notifications/tools/list_changed';
const UPDATED = 'notifications/resources/updated';

async function scene(more: object = {}) {
  const disposal = new AsyncDisposableStack();
  const server = disposal.use(new ListenedServer());
  await server.start();
  const switchboard = disposal.use(
    await startSwitchboard({ told: { url: server.url } }, { ...settings, ...more }),
  );
  const client = new RawModern(switchboard.url);
  await client.request('tools/list');
  (await server.listListen(1)).acknowledge();
  /** The server has not acknowledged the subscription yet. */
  const follow = (name: string) => {
    const notifications = { resourceSubscriptions: [`resource://told/test://${name}`] };
    return client.begin('subscriptions/listen', { notifications });
  };
  return { server, client, switchboard, follow, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

it('a client gets changes of an HTTP server after an outage', async () => {
  await using parts = await scene();
  const { server, client } = parts;
  const { stream: lists } = await client.listen({ toolsListChanged: true });
  await server.stop();
  server.tools = ['greet', 'wave'];
  await server.start();
  const again = await server.listListen(2);
  again.acknowledge();
  await lists.message(({ method }) => method === TOOLS);
  server.tools = ['greet', 'wave', 'bow'];
  again.tell(TOOLS);
  await lists.events.several(2, ({ message }) => message?.method === TOOLS);
  const { result } = await client.request('tools/list');
  expect(result?.tools).toHaveLength(3);
});

it('a client gets updates of a resource after an outage of its HTTP server', async () => {
  await using parts = await scene();
  const { server, client } = parts;
  const opening = client.listen({ resourceSubscriptions: ['resource://told/test://a'] });
  (await server.resourceListen(1)).acknowledge();
  const { stream: heard } = await opening;
  await server.stop();
  await server.start();
  const again = await server.resourceListen(2);
  again.acknowledge();
  again.tell(UPDATED, { uri: 'test://a' });
  const { params } = await heard.message(({ method }) => method === UPDATED);
  expect(params?.uri).toBe('resource://told/test://a');
});

it('a client gets changes of a stdio server after a restart', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard(
    { told: fixtureServer('eras/speaks-given-era', witness.env('told'), 'modern') },
    settings,
  );
  const client = new RawModern(switchboard.url);
  await client.request('tools/list');
  const uri = 'resource://told/test://note';
  const { stream: heard } = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
  const { pid } = await witness.sees('told', 'is');
  process.kill(pid, 'SIGKILL');
  const isListen = ({ method, pid: other }: Record<string, unknown>) =>
    method === 'subscriptions/listen' && other !== pid;
  await witness.severalOf('told', 'gets', 2, isListen);
  expect(textIn(await client.call('touch'))).toContain('version 2');
  const { params } = await heard.message(({ method }) => method === UPDATED);
  expect(params?.uri).toBe(uri);
  await client.call('grow');
  await heard.message(({ method }) => method === TOOLS);
});

it('a lost connection does not count as busy', async () => {
  await using parts = await scene({ idleStopMs: 2_000 });
  const { server, client, switchboard } = parts;
  await client.call('greet');
  await server.stop();
  // The renewed subscription detects it, not a call.
  await switchboard.event(({ state }) => state === 'backing_off');
  await server.start();
  const again = await server.listListen(2);
  again.acknowledge();
  await again.closed;
  expect(textIn(await client.call('greet'))).toBe('hello');
});

it('one subscription to resources remains, in whatever order they are acknowledged', async () => {
  await using parts = await scene();
  const { server, follow } = parts;
  const pending = [follow('a')];
  const first = await server.resourceListen(1);
  pending.push(follow('b'));
  const second = await server.resourceListen(2);
  second.acknowledge();
  first.acknowledge();
  await first.closed;
  expect(second.isOpen).toBe(true);
  for (const { close } of pending) close();
});

it('subscriptions that are cancelled before they are acknowledged leave nothing behind', async () => {
  await using parts = await scene();
  const { server, follow } = parts;
  const pending = [];
  for (const [index, name] of ['a', 'b', 'c'].entries()) {
    pending.push(follow(name));
    await server.resourceListen(index + 1);
  }
  for (const { close } of pending) close();
  for (const number of [1, 2, 3]) {
    const listen = await server.resourceListen(number);
    await listen.closed;
  }
});

it('events that a server declines do not end those that it sends', async () => {
  await using parts = await scene();
  const { server, follow } = parts;
  const kept = follow('a');
  const first = await server.resourceListen(1);
  first.acknowledge();
  await kept.response;
  const refused = follow('b');
  (await server.resourceListen(2)).refuse();
  await refused.response;
  expect(first.isOpen).toBe(true);
  first.end();
  const again = await server.resourceListen(3);
  expect(again.filter.resourceSubscriptions).toEqual(['test://a']);
  kept.close();
});
