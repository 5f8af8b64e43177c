import { expect, it } from 'vitest';
import { readMessage } from '../../protocol/message-reader.ts';
import type { Upstream } from '../../upstreams/upstream.ts';
import { begunTask, progressOf } from './tasks.ts';

it('a task keeps only the progress token of its call', () => {
  const params = {
    name: 'research',
    arguments: { text: 'x'.repeat(100_000) },
    _meta: { progressToken: 'p' },
  };
  const message = readMessage(
    Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })),
  );
  const { given } = progressOf(message, {} as Upstream, 1)!;
  expect(given.toString()).toBe('"p"');
  expect(given.buffer).not.toBe(message.bytes.buffer);
});

it('a task with an id that clients cannot send is dropped', () => {
  const begun = (taskId: unknown) =>
    begunTask([Buffer.from(JSON.stringify({ result: { task: { taskId } } }))]);
  expect(begun('é'.repeat(4_096))).toBe('é'.repeat(4_096));
  expect(begun('é'.repeat(4_097))).toBeUndefined();
  expect(begun(7)).toBeUndefined();
});
