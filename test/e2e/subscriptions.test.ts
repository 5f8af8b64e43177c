import { describe, expect, it } from 'vitest';
import { type ConnectedClient, connectHttp, connectSse } from '../helpers/clients.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const UPDATED = 'notifications/resources/updated';
const todo = 'resource://notes/note://todo';
const done = 'resource://notes/note://done';

const updatesOf = ({ notifications }: ConnectedClient) =>
  notifications.items.filter(({ method }) => method === UPDATED).map(({ params }) => params?.uri);
const updated = ({ notifications }: ConnectedClient, uri: string, count = 1) =>
  notifications.several(count, ({ method, params }) => method === UPDATED && params?.uri === uri);

/** Three clients of one server, and the subscriptions that the server receives. */
async function startNotes() {
  const witness = await Witness.open();
  const switchboard = await startSwitchboard({
    notes: fixtureServer('notes', { ...witness.env('notes'), NOTES_OF: 'all' }),
  });
  const clients = await Promise.all([
    connectHttp(switchboard.url),
    connectSse(`${switchboard.baseUrl}/sse`),
    connectHttp(switchboard.url),
  ]);
  const told = (method: string) => (sighting: { [detail: string]: unknown }) =>
    sighting.method === `resources/${method}`;
  const uriOf = ({ params }: { [detail: string]: unknown }) => (params as { uri: string }).uri;
  return {
    url: switchboard.url,
    clients,
    /** The URIs that the server was asked to subscribe to or unsubscribe from. */
    toldTo: (method: string) => witness.seenBy('notes', 'message').filter(told(method)).map(uriOf),
    async firstToldTo(method: string, count: number) {
      return (await witness.severalOf('notes', 'message', count, told(method))).map(uriOf);
    },
    touch: (uri: string) => clients[0].client.callTool({ name: 'touch', arguments: { uri } }),
    async [Symbol.asyncDispose]() {
      for (const client of clients) await client[Symbol.asyncDispose]();
      await switchboard.stop();
      await witness[Symbol.asyncDispose]();
    },
  };
}

describe.concurrent('an updated resource', () => {
  it('is announced only to the clients that subscribed to it [G13]', async () => {
    await using notes = await startNotes();
    const [one, two, three] = notes.clients;
    await one.client.subscribeResource({ uri: todo });
    await two.client.subscribeResource({ uri: todo });
    await three.client.subscribeResource({ uri: done });
    expect(await notes.firstToldTo('subscribe', 2)).toEqual(['note://todo', 'note://done']);

    // Messages arrive in order, so the next one proves that nothing came before it.
    await notes.touch('note://todo');
    await notes.touch('note://done');
    await notes.touch('note://todo');
    await Promise.all([updated(one, todo, 2), updated(two, todo, 2), updated(three, done)]);
    expect(updatesOf(one)).toEqual([todo, todo]);
    expect(updatesOf(two)).toEqual([todo, todo]);
    expect(updatesOf(three)).toEqual([done]);
    expect(notes.toldTo('subscribe')).toHaveLength(2);
  });

  it('is announced until the last client is gone, and then the server gets one unsubscribe [G13]', async () => {
    await using notes = await startNotes();
    const [one, two, three] = notes.clients;
    await one.client.subscribeResource({ uri: todo });
    await two.client.subscribeResource({ uri: todo });
    await one.client.subscribeResource({ uri: done });
    await one.client.unsubscribeResource({ uri: todo });
    expect(notes.toldTo('unsubscribe')).toEqual([]);

    await notes.touch('note://todo');
    await notes.touch('note://done');
    await Promise.all([updated(two, todo), updated(one, done)]);
    expect(updatesOf(one)).toEqual([done]);

    await two.client.close();
    expect(await notes.firstToldTo('unsubscribe', 1)).toEqual(['note://todo']);
    expect(updatesOf(three)).toEqual([]);
  });

  it("is announced under the URI of the client's subscription, even the server's own [G11, G13]", async () => {
    await using notes = await startNotes();
    const [one, two] = notes.clients;
    await one.client.subscribeResource({ uri: 'note://todo' });
    await two.client.subscribeResource({ uri: todo });
    await notes.touch('note://todo');
    await Promise.all([updated(one, 'note://todo'), updated(two, todo)]);
    expect(notes.toldTo('subscribe')).toEqual(['note://todo']);
  });

  it('is not announced to a client that unsubscribes at once [G13]', async () => {
    await using notes = await startNotes();
    // Only a batch guarantees the order.
    const hasty = await RawSession.open(notes.url, '2025-03-26');
    const standing = await hasty.listen();
    const { text } = await hasty.post([
      { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: todo } },
      { jsonrpc: '2.0', id: 2, method: 'resources/unsubscribe', params: { uri: todo } },
    ]);
    expect(text).not.toContain('error');
    expect(await notes.firstToldTo('unsubscribe', 1)).toEqual(['note://todo']);
    await hasty.request('resources/subscribe', { uri: done });
    await notes.touch('note://todo');
    await notes.touch('note://done');
    await standing.message(({ params }) => params?.uri === done);
    const updates = standing.messages.filter(({ method }) => method === UPDATED);
    expect(updates.map(({ params }) => params?.uri)).toEqual([done]);
  });

  it('cannot be subscribed to if no server has it [G13]', async () => {
    await using notes = await startNotes();
    const [one] = notes.clients;
    await expect(one.client.subscribeResource({ uri: 'note://nothing' })).rejects.toThrow(
      'Unknown resource: note://nothing',
    );
    expect(notes.toldTo('subscribe')).toEqual([]);
  });

  it('gets no subscription from a request that is rejected for a duplicate id', async () => {
    await using notes = await startNotes();
    const session = await RawSession.open(notes.url, '2025-03-26');
    await session.request('resources/list');
    const subscribe = (uri: string) => ({
      ...{ jsonrpc: '2.0', id: 'same', method: 'resources/subscribe', params: { uri } },
    });
    const { json } = await session.post([subscribe(todo), subscribe(done)]);
    expect(json).toMatchObject([{ error: { code: -32600 } }, { result: {} }]);
    // The server receives messages in order, so earlier ones have arrived by then.
    await session.request('resources/unsubscribe', { uri: todo });
    expect(await notes.firstToldTo('unsubscribe', 1)).toEqual(['note://todo']);
    expect(notes.toldTo('subscribe')).toEqual(['note://todo']);
  });
});
