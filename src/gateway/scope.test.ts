import { afterEach, expect, it, vi } from 'vitest';
import { Scope } from './scope.ts';

const settings = {
  mode: 'on-conflict',
  separator: '__',
  pageSize: 100,
  maxItems: 100,
  discoveryWaitMs: 0,
  maxInstructionsBytes: 1_000,
} as const;

afterEach(() => vi.useRealTimers());

function createScope() {
  const notified: string[][] = [];
  vi.useFakeTimers();
  return {
    scope: new Scope(
      () => [],
      settings,
      (lists) => notified.push(lists),
    ),
    notified,
  };
}

it('reports changes in quick succession once', () => {
  const { scope, notified } = createScope();
  scope.changes(['tools']);
  scope.changes(['prompts', 'tools']);
  expect(notified).toEqual([]);
  vi.runAllTimers();
  expect(notified).toEqual([['tools', 'prompts']]);
});

it('reports pending changes once when it is flushed', () => {
  const { scope, notified } = createScope();
  scope.flush();
  expect(notified).toEqual([]);
  scope.changes(['tools']);
  scope.flush();
  expect(notified).toEqual([['tools']]);
  vi.runAllTimers();
  expect(notified).toHaveLength(1);
});
