import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { answerJson, HttpPeer, openEvents, writeEvent } from '../helpers/http-peer.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { RawModern, subscriptionKey } from './raw-modern.ts';

const updated = 'notifications/resources/updated';

async function startLegacy() {
  const standing = Promise.withResolvers<ServerResponse>();
  const peer = await HttpPeer.start({
    box: ({ method, message, response }) => {
      if (method === 'GET') {
        openEvents(response);
        standing.resolve(response);
        return true;
      }
      const results: Record<string, object> = {
        initialize: {
          protocolVersion: message?.params?.protocolVersion,
          capabilities: { resources: { subscribe: true } },
          serverInfo: { name: 'box', version: '1' },
        },
        'resources/list': { resources: [{ uri: 'note:a', name: 'a' }] },
        'resources/templates/list': { resourceTemplates: [] },
      };
      const result = results[message?.method ?? ''];
      if (result === undefined) return false;
      answerJson(response, { id: message?.id, result });
      return true;
    },
  });
  return { peer, standing: standing.promise };
}

it('subscriptions of both eras share one at a legacy server, which ends with the last', async () => {
  const { peer: started, standing } = await startLegacy();
  await using peer = started;
  await using switchboard = await startSwitchboard(peer.configuration());
  const asked = (method: string) => peer.seenBy('box').filter(({ message }) => message?.method === method);
  const client = new RawModern(switchboard.url);
  const session = await RawSession.open(switchboard.url);
  const ofSession = await session.listen();
  await session.request('resources/subscribe', { uri: 'note:a' });
  const { stream, honoured } = await client.listen({ resourceSubscriptions: ['note:a'] }, 7);
  expect(honoured).toEqual({ resourceSubscriptions: ['note:a'] });
  expect(asked('resources/subscribe')).toHaveLength(1);
  writeEvent(await standing, {}, { method: updated, params: { uri: 'note:a' } });
  const isUpdate = ({ method }: { method?: string }) => method === updated;
  expect(await stream.message(isUpdate)).toEqual({
    jsonrpc: '2.0',
    method: updated,
    params: { uri: 'note:a', _meta: { [subscriptionKey]: 7 } },
  });
  expect(await ofSession.message(isUpdate)).toEqual({
    jsonrpc: '2.0',
    method: updated,
    params: { uri: 'note:a' },
  });
  await session.request('resources/unsubscribe', { uri: 'note:a' });
  expect(asked('resources/unsubscribe')).toHaveLength(0);
  await stream.cut();
  await peer.sees('box', ({ message }) => message?.method === 'resources/unsubscribe');
  await ofSession.cut();
});
