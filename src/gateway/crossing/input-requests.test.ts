import { expect, it } from 'vitest';
import { readMessage } from '../../protocol/message-reader.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { InputRequests } from './input-requests.ts';

const upstream = {} as Upstream;
const inputRequest = (id: number, text = '') => {
  const params = { message: text, requestedSchema: { type: 'object', properties: {} } };
  return readMessage(
    Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params })),
  );
};

it('a call has a hundred open requests, and no more', () => {
  const requests = new InputRequests();
  for (let id = 0; id < 100; id++) requests.add(inputRequest(id), upstream);
  expect(() => requests.add(inputRequest(100), upstream)).toThrow('Too many requests');
  expect(Object.keys(requests.inputRequests())).toHaveLength(100);
  requests.withdraw(upstream, Buffer.from('7'));
  requests.add(inputRequest(100), upstream);
  expect(() => requests.add(inputRequest(101), upstream)).toThrow('Too many requests');
});

it('or fewer, where they are large', () => {
  const requests = new InputRequests();
  const large = inputRequest(0, 'x'.repeat(2 ** 20));
  for (let id = 0; id < 63; id++) requests.add(large, upstream);
  expect(() => requests.add(large, upstream)).toThrow('Too many requests');
  requests.add(inputRequest(1), upstream);
});
