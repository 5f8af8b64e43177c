import { expect, it } from 'vitest';
import { readMessage } from '../../protocol/envelope.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { Questions } from './input-requests.ts';

const upstream = {} as Upstream;
const question = (id: number, text = '') => {
  const params = { message: text, requestedSchema: { type: 'object', properties: {} } };
  return readMessage(
    Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params })),
  );
};

it('a call has a hundred open questions, and no more', () => {
  const questions = new Questions();
  for (let id = 0; id < 100; id++) questions.add(question(id), upstream);
  expect(() => questions.add(question(100), upstream)).toThrow('Too many questions');
  expect(Object.keys(questions.inputRequests())).toHaveLength(100);
  questions.withdraw(upstream, Buffer.from('7'));
  questions.add(question(100), upstream);
  expect(() => questions.add(question(101), upstream)).toThrow('Too many questions');
});

it('or fewer, where they are large', () => {
  const questions = new Questions();
  const large = question(0, 'x'.repeat(2 ** 20));
  for (let id = 0; id < 63; id++) questions.add(large, upstream);
  expect(() => questions.add(large, upstream)).toThrow('Too many questions');
  questions.add(question(1), upstream);
});
