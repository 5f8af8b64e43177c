import { expect, it } from 'vitest';
import type { Client } from './request.ts';
import { Subscriptions } from './subscriptions.ts';

it('what is followed at one server has a limit in all, and makes room when it is let go', async () => {
  const client = {} as Client;
  const subscriptions = new Subscriptions();
  const told: string[] = [];
  const follow = (uri: string) => subscriptions.add(uri, client, async () => told.push(uri));
  const uris = Array.from({ length: 128 }, (_, index) => `${index}`.padEnd(8 * 1024, 'x'));
  for (const uri of uris) await follow(uri);
  await expect(follow('one more')).rejects.toMatchObject({ code: 'server_busy' });
  expect(told).toEqual(uris);
  await follow(uris[0]!);
  subscriptions.remove(uris[0]!, client);
  await follow('one more');
  await expect(subscriptions.add('refused', client, () => Promise.reject(new Error('no')))).rejects.toThrow(
    'no',
  );
  subscriptions.clear();
  for (const uri of uris) await follow(uri);
  expect(subscriptions.uris()).toHaveLength(128);
});
