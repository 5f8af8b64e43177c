import { expect, it } from 'vitest';
import type { FinishedCall } from '../gateway/records.ts';
import { BLOCK_CALLS, CallBlock, recordsOf } from './call-block.ts';

function call(more: Partial<FinishedCall> = {}): FinishedCall {
  return {
    project: { id: 'a', name: 'default' },
    ...{ client: 'test 1', method: 'tools/call', server: 'box', replica: 1, own: 'echo' },
    ...{ outcome: 'answered', isRpcError: false, isToolError: false, error: undefined },
    ...{ durationMs: 1.23456, inputBytes: 10, outputBytes: 20, request: undefined, answer: undefined },
    ...more,
  };
}

const asTheyAre = (_project: string, name: string) => name;

it('restores every call, whatever differs between them', () => {
  const [ci, cd] = [
    { id: '1', name: 'ci' },
    { id: '2', name: 'cd' },
  ];
  const calls = [
    call(),
    call({ principal: ci }),
    call({ principal: cd }),
    call({ principal: ci }),
    call({ own: 'other' }),
    call(),
    call({ server: 'bag' }),
    call({ client: 'test 2' }),
    call({ replica: undefined }),
    call({ method: 'prompts/get' }),
    call({ project: { id: 'b', name: 'else' } }),
    call({ own: 'other', isToolError: true }),
    call({ outcome: 'cancelled' }),
  ];
  const block = new CallBlock();
  calls.forEach((each, index) => void block.add(each, 1_000 + index));
  const plain = block.plain(asTheyAre);
  expect(plain.kinds).toHaveLength(9);
  expect(recordsOf(plain)).toEqual(
    calls.map(
      ({ project, principal, client, method, server, replica = null, own, outcome, isToolError }, index) => ({
        id: expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/),
        ...{ projectId: project.id, principal, client, method, server, replica, tool: own },
        status: outcome === 'cancelled' ? 'cancelled' : isToolError ? 'tool_error' : 'ok',
        ...{ durationMs: 1.235, inputBytes: 10, outputBytes: 20, startedAt: new Date(998 + index) },
        ...{ error: null, input: null, output: null },
      }),
    ),
  );
});

it('keeps the ids of its calls until it is reused', () => {
  const block = new CallBlock();
  while (!block.isFull) block.add(call(), 1_000);
  const ids = recordsOf(block.plain(asTheyAre)).map(({ id }) => id);
  expect(new Set(ids).size).toBe(BLOCK_CALLS);
  expect(recordsOf(block.plain(asTheyAre)).map(({ id }) => id)).toEqual(ids);
  block.clear();
  block.add(call({ own: 'next' }), 1_000);
  const [next, ...others] = recordsOf(block.plain(asTheyAre));
  expect(others).toEqual([]);
  expect(ids).not.toContain(next!.id);
  expect(next!.tool).toBe('next');
});

it('redacts names', () => {
  const block = new CallBlock();
  block.add(call({ own: 'file:///hunter2' }), 1_000);
  const [record] = recordsOf(block.plain((project, name) => `${project} ${name.replace('hunter2', '***')}`));
  expect(record!.tool).toBe('a file:///***');
});
