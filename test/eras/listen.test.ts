import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { ModernPeer, says, tool } from './modern-peer.ts';
import { RawModern, subscriptionKey } from './raw-modern.ts';

const updated = 'notifications/resources/updated';
const toolsChanged = 'notifications/tools/list_changed';
const wanted = 'resourceSubscriptions';

describe('a subscription', () => {
  let peer: ModernPeer;
  let switchboard: RunningSwitchboard;
  let client: RawModern;
  beforeEach(async () => {
    const resources = (...uris: string[]) => ({
      'resources/list': () => ({ resources: uris.map((uri) => ({ uri, name: uri })) }),
      'resources/templates/list': () => ({ resourceTemplates: [] }),
      'tools/list': () => ({ tools: [tool('touch')] }),
    });
    peer = await ModernPeer.start({
      telling: {
        capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
        lists: resources('note:a', 'note:b', 'note:untold'),
        honours: ({ [wanted]: uris, ...filter }) => ({
          ...filter,
          ...(Array.isArray(uris) && { [wanted]: uris.filter((uri) => uri !== 'note:untold') }),
        }),
        answer: () => says('touched'),
      },
      silent: { capabilities: { resources: {} }, lists: resources('note:c') },
    });
    switchboard = await startSwitchboard(peer.configuration());
    client = new RawModern(switchboard.url);
  });
  afterEach(async () => {
    await switchboard?.stop();
    await peer?.[Symbol.asyncDispose]();
  });
  const place = (own: string, server = 'telling') => `resource://${server}/${own}`;
  const listensFor = () =>
    peer.listens.items.filter(({ filter, isOpen }) => isOpen && filter[wanted] !== undefined);

  it('is acknowledged with the events that it covers, and no others', async () => {
    const { honoured, meta, stream } = await client.listen({
      toolsListChanged: true,
      promptsListChanged: false,
      resourcesListChanged: 'yes',
      somethingElse: true,
      [wanted]: [
        place('note:a'),
        place('note:untold'),
        place('note:c', 'silent'),
        'nowhere:at-all',
        'note:b',
      ],
    });
    expect(honoured).toEqual({ toolsListChanged: true, [wanted]: [place('note:a'), 'note:b'] });
    expect(meta).toEqual({ [subscriptionKey]: expect.any(Number) });
    await stream.cut();
  });

  it.each([
    ['nothing', {}],
    ['an unknown resource', { [wanted]: ['nowhere:at-all'] }],
    ['a resource whose server does not tell', { [wanted]: ['resource://silent/note:c'] }],
    ['something unknown', { somethingElse: true }],
  ])('to %s is acknowledged and ends', async (_what, filter) => {
    const { honoured, stream } = await client.listen(filter, 'my id');
    expect(honoured).toEqual({});
    await stream.ended;
    expect(stream.messages.at(-1)).toMatchObject({
      id: 'my id',
      result: { resultType: 'complete', _meta: { [subscriptionKey]: 'my id' } },
    });
  });

  it.each([
    ['no filter', {}],
    ['a list', { notifications: [] }],
    ['URIs that are none', { notifications: { [wanted]: [1] } }],
    ['one URI', { notifications: { [wanted]: 'note:a' } }],
  ])('with %s is rejected', async (_what, params) => {
    const { status, message } = await client.send('subscriptions/listen', params);
    expect({ status, error: message?.error }).toMatchObject({ status: 400, error: { code: -32602 } });
  });

  it('gets only its own events, under its own id', async () => {
    const big = 9007199254740990;
    const a = await client.listen({ [wanted]: [place('note:a')] }, 'first');
    const b = await client.listen({ [wanted]: [place('note:b'), 'note:b'] }, big);
    const tools = await client.listen({ toolsListChanged: true }, 0);
    peer.notify('telling', updated, { uri: 'note:a' });
    await a.stream.message(({ method }) => method === updated);
    peer.notify('telling', updated, { uri: 'note:b', extra: { kept: [1] } });
    await b.stream.events.several(3, () => true);
    peer.notify('telling', toolsChanged);
    await tools.stream.message(({ method }) => method === toolsChanged);
    await switchboard.stop();
    await Promise.all([a, b, tools].map(({ stream }) => stream.ended));
    const told = ({ stream }: typeof a) =>
      stream.messages.filter(({ method }) => method !== undefined).slice(1);
    expect(told(a)).toEqual([
      {
        jsonrpc: '2.0',
        method: updated,
        params: { uri: place('note:a'), _meta: { [subscriptionKey]: 'first' } },
      },
    ]);
    expect(told(b)).toEqual(
      [place('note:b'), 'note:b'].map((uri) => ({
        jsonrpc: '2.0',
        method: updated,
        params: { uri, extra: { kept: [1] }, _meta: { [subscriptionKey]: big } },
      })),
    );
    expect(told(tools)).toEqual([
      { jsonrpc: '2.0', method: toolsChanged, params: { _meta: { [subscriptionKey]: 0 } } },
    ]);
  });

  it('that ends is cancelled at the server if it was the last', async () => {
    const [one, two] = [
      await client.listen({ [wanted]: ['note:a'] }),
      await client.listen({ [wanted]: ['note:a'] }),
    ];
    expect(listensFor().map(({ filter }) => filter[wanted])).toEqual([['note:a']]);
    const [upstream] = listensFor();
    await one.stream.cut();
    peer.notify('telling', updated, { uri: 'note:a' });
    await two.stream.message(({ method }) => method === updated);
    expect(upstream!.isOpen).toBe(true);
    await two.stream.cut();
    await peer.unlistens.first((listen) => listen === upstream);
    expect(listensFor()).toEqual([]);
  });

  it('shares one at the server with a legacy subscription, and each is notified in its own era', async () => {
    const session = await RawSession.open(switchboard.url);
    const standing = await session.listen();
    await session.request('resources/subscribe', { uri: place('note:a') });
    const { stream } = await client.listen({ [wanted]: ['note:a'] }, 'modern');
    expect(listensFor().map(({ filter }) => filter[wanted])).toEqual([['note:a']]);
    peer.notify('telling', updated, { uri: 'note:a' });
    const isUpdate = ({ method }: { method?: string }) => method === updated;
    expect(await standing.message(isUpdate)).toEqual({
      jsonrpc: '2.0',
      method: updated,
      params: { uri: place('note:a'), _meta: {} },
    });
    expect(await stream.message(isUpdate)).toEqual({
      jsonrpc: '2.0',
      method: updated,
      params: { uri: 'note:a', _meta: { [subscriptionKey]: 'modern' } },
    });
    await stream.cut();
    await session.request('resources/unsubscribe', { uri: place('note:a') });
    await peer.unlistens.first(({ filter }) => filter[wanted] !== undefined);
    await standing.cut();
  });

  it('ends with a result when Switchboard stops', async () => {
    const { stream } = await client.listen({ toolsListChanged: true }, 'last');
    await switchboard.stop();
    await stream.ended;
    expect(stream.messages.at(-1)).toMatchObject({
      id: 'last',
      result: { resultType: 'complete', _meta: { [subscriptionKey]: 'last' } },
    });
  });

  it('continues after the server closed its stream', async () => {
    const { stream } = await client.listen({ [wanted]: ['note:a'] });
    const [upstream] = listensFor();
    const again = peer.listens.next(({ filter }) => filter[wanted] !== undefined);
    upstream!.response.destroy();
    await again;
    peer.notify('telling', updated, { uri: 'note:a' });
    await stream.message(({ method }) => method === updated);
    await stream.cut();
  });
});
