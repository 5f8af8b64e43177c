import { describe, expect, it } from 'vitest';
import {
  bridgeProgram,
  legacyOpening,
  modernRequest,
  type RawBridge,
  startBridge,
} from '../helpers/bridge.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const listen = 'subscriptions/listen';
const acknowledged = 'notifications/subscriptions/acknowledged';
const subscriptionKey = 'io.modelcontextprotocol/subscriptionId';
const noteUri = 'test://note';
const everything = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: [noteUri],
};
const echo = (text: string) => ({ name: 'echo', arguments: { text } });
const wait = (key: string) => ({ name: 'wait', arguments: { key } });

let witness: Witness;
let switchboard: RunningSwitchboard;

setUp(async (use) => {
  witness = use(await Witness.open());
  const eras = fixtureServer('eras/legacy', witness.env('eras'));
  switchboard = use(await startSwitchboard({ eras }));
});

const start = (): RawBridge => startBridge(bridgeProgram(switchboard.baseUrl));
const waiting = (key: string) => witness.sees('eras', 'waiting', (sighting) => sighting.key === key);
const cancelled = (key: string) => witness.sees('eras', 'cancelled', (sighting) => sighting.key === key);

describe('switchboard stdio', () => {
  it('responds under the ids that the client chose when several requests are in flight', async () => {
    await using bridge = start();
    const ids = ['a', 1, 0, -7, '1', 'ü "'];
    bridge.say(...ids.map((id) => modernRequest(id, 'tools/call', echo(String(id)))));
    for (const id of ids) {
      expect(await bridge.answerTo(id)).toMatchObject({
        result: { structuredContent: { text: String(id) } },
      });
    }
  });

  it('serves a client that discovers the server and then opens a session, and the reverse', async () => {
    await using bridge = start();
    bridge.say(modernRequest(1, 'server/discover'));
    expect((await bridge.answerTo(1)).result).toMatchObject({
      supportedVersions: expect.arrayContaining(['2026-07-28']),
    });
    bridge.say(...legacyOpening(2));
    expect((await bridge.answerTo(2)).result).toMatchObject({ protocolVersion: '2025-11-25' });
    bridge.say(
      { id: 3, method: 'tools/call', params: echo('legacy') },
      modernRequest(4, 'tools/call', echo('modern')),
    );
    expect(await bridge.answerTo(3)).toMatchObject({ result: { structuredContent: { text: 'legacy' } } });
    expect(await bridge.answerTo(4)).toMatchObject({
      result: { structuredContent: { text: 'modern' }, resultType: 'complete' },
    });
    // An error in one era must not end the session of the other.
    bridge.say(modernRequest(5, 'no/such/method'), { id: 6, method: 'ping' });
    expect((await bridge.answerTo(5)).error).toMatchObject({ code: -32601 });
    expect(await bridge.answerTo(6)).toMatchObject({ result: {} });
  });

  it('does not wait for a session that is still opening', async () => {
    await using bridge = start();
    bridge.say(modernRequest(1, 'tools/call', echo('first')), ...legacyOpening(2), { id: 3, method: 'ping' });
    await Promise.all([1, 2, 3].map((id) => bridge.answerTo(id)));
    expect(bridge.received.items.find(({ error }) => error !== undefined)).toBe(undefined);
  });

  it('passes errors on unchanged', async () => {
    await using bridge = start();
    const future = modernRequest(1, 'tools/list') as { params: { _meta: Record<string, unknown> } };
    future.params._meta['io.modelcontextprotocol/protocolVersion'] = '2099-01-01';
    bridge.say(future, modernRequest('two', listen, { notifications: 'all of them' }));
    bridge.say(modernRequest(3, 'tools/call', { name: 'nobody has it' }), { id: 4, method: 'tools/list' });
    expect((await bridge.answerTo(1)).error).toMatchObject({
      code: -32022,
      data: { requested: '2099-01-01' },
    });
    expect((await bridge.answerTo('two')).error).toMatchObject({ code: -32602 });
    expect((await bridge.answerTo(3)).error).toMatchObject({ code: -32602 });
    expect((await bridge.answerTo(4)).error?.message).toContain('initialize first');
  });

  it('cancels a call at the server when its client cancels, and sends no response', async () => {
    await using bridge = start();
    bridge.say(modernRequest('w', 'tools/call', wait('alone')));
    await waiting('alone');
    bridge.say({ method: 'notifications/cancelled', params: { requestId: 'w' } });
    await cancelled('alone');
    bridge.say(modernRequest(2, 'tools/call', echo('after it')));
    expect((await bridge.end()).map(({ id }) => id)).toEqual([2]);
  });

  it('sends changes under the subscription id until the client cancels it', async () => {
    await using bridge = start();
    bridge.say(modernRequest('changes', listen, { notifications: everything }));
    const { params } = await bridge.received.first(({ method }) => method === acknowledged);
    expect(params).toEqual({
      notifications: { ...everything, resourceSubscriptions: [noteUri] },
      _meta: { [subscriptionKey]: 'changes' },
    });
    bridge.say(
      modernRequest(1, 'tools/call', { name: 'touch' }),
      modernRequest(2, 'tools/call', { name: 'grow' }),
    );
    for (const changed of ['notifications/resources/updated', 'notifications/tools/list_changed']) {
      const told = await bridge.received.first(({ method }) => method === changed);
      expect(told.params).toMatchObject({ _meta: { [subscriptionKey]: 'changes' } });
    }
    bridge.say({ method: 'notifications/cancelled', params: { requestId: 'changes' } });
    bridge.say(modernRequest(3, 'tools/call', { name: 'touch' }));
    await bridge.answerTo(3);
    const all = await bridge.end();
    expect(all.filter(({ id }) => id === 'changes')).toEqual([]);
    expect(all.filter(({ method }) => method === 'notifications/resources/updated')).toHaveLength(1);
  });

  it('ends a subscription to nothing without asking a server', async () => {
    await using bridge = start();
    bridge.say(modernRequest('none', listen, { notifications: {} }));
    expect((await bridge.answerTo('none')).result).toMatchObject({
      resultType: 'complete',
      _meta: { [subscriptionKey]: 'none' },
    });
    expect(bridge.received.items.map(({ method }) => method)).toEqual([acknowledged, undefined]);
  });

  it('exits when stdin ends and all requests are answered, even with an open subscription', async () => {
    await using bridge = start();
    bridge.say(modernRequest('open', listen, { notifications: { toolsListChanged: true } }));
    await bridge.received.first(({ method }) => method === acknowledged);
    bridge.say({
      method: 'notifications/of-something',
      params: (modernRequest(0, '') as { params: object }).params,
    });
    bridge.say(modernRequest(1, 'tools/call', echo('the last')));
    expect((await bridge.end()).filter(({ method }) => method === undefined)).toMatchObject([
      { id: 1, result: { structuredContent: { text: 'the last' } } },
    ]);
  });
});
