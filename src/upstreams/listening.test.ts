import { expect, it } from 'vitest';
import { readMessage } from '../protocol/message-reader.ts';
import { filterIn } from './listening.ts';

function acknowledged(notifications: unknown): ReturnType<typeof filterIn> {
  const method = 'notifications/subscriptions/acknowledged';
  return filterIn(
    readMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method, params: { notifications } }))),
  );
}

it('accepts only valid subscriptions from an acknowledgement', () => {
  const resourceSubscriptions = ['note://a', 5, null];
  expect(
    acknowledged({ toolsListChanged: true, promptsListChanged: 1, resourceSubscriptions, more: [{}] }),
  ).toEqual({ toolsListChanged: true, resourceSubscriptions: ['note://a'] });
  for (const wrong of [undefined, null, 5, 'all', ['a']]) expect(acknowledged(wrong)).toEqual({});
  expect(acknowledged({ resourceSubscriptions: 'note://a' })).toEqual({});
});

it('ignores an acknowledgement that is too large', () => {
  expect(acknowledged({ toolsListChanged: true, more: 'x'.repeat(5 * 1024 * 1024) })).toEqual({});
});
