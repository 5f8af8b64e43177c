import { expect, it } from 'vitest';
import { readMessage } from '../../protocol/message-reader.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { HeldInput } from './held-calls.ts';

const upstream = {} as Upstream;
const inputRequest = (id: number, text = '') => {
  const params = { message: text, requestedSchema: { type: 'object', properties: {} } };
  return readMessage(
    Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params })),
  );
};

it('limits a call to a hundred pending requests', () => {
  const input = new HeldInput({} as never, {} as never);
  for (let id = 0; id < 100; id++) input.add(inputRequest(id), upstream);
  expect(() => input.add(inputRequest(100), upstream)).toThrow('Too many requests');
  expect(Object.keys(input.inputRequests())).toHaveLength(100);
  input.withdraw(upstream, Buffer.from('7'));
  input.add(inputRequest(100), upstream);
  expect(() => input.add(inputRequest(101), upstream)).toThrow('Too many requests');
});

it('limits their size', () => {
  const input = new HeldInput({} as never, {} as never);
  const large = inputRequest(0, 'x'.repeat(2 ** 20));
  for (let id = 0; id < 63; id++) input.add(large, upstream);
  expect(() => input.add(large, upstream)).toThrow('Too many requests');
  input.add(inputRequest(1), upstream);
});
