import { expect, it } from 'vitest';
import type { LiveUpstream } from './connector.ts';
import type { Client } from './request.ts';
import { Subscriptions } from './subscriptions.ts';

it('limits the subscriptions of one server in all, and makes room when one ends', async () => {
  const client = {} as Client;
  const subscriptions = new Subscriptions();
  const subscribed: string[] = [];
  const liveWith = (subscribe: (uri: string) => Promise<unknown>) =>
    ({
      listening: { subscribe },
      facts: { capabilities: { resources: { subscribe: true } } },
    }) as unknown as LiveUpstream;
  const live = liveWith(async (uri) => subscribed.push(uri));
  const follow = (uri: string) => subscriptions.add(uri, client, live);
  const uris = Array.from({ length: 128 }, (_, index) => `${index}`.padEnd(8 * 1024, 'x'));
  for (const uri of uris) await follow(uri);
  await expect(follow('one more')).rejects.toMatchObject({ code: 'server_busy' });
  expect(subscribed).toEqual(uris);
  await follow(uris[0]!);
  subscriptions.remove(uris[0]!, client);
  await follow('one more');
  const refusing = liveWith(() => Promise.reject(new Error('no')));
  await expect(subscriptions.add('refused', client, refusing)).rejects.toThrow('no');
  subscriptions.clear();
  for (const uri of uris) await follow(uri);
  expect(subscriptions.uris()).toHaveLength(128);
});
