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

function scopeThatTells() {
  const told: string[][] = [];
  vi.useFakeTimers();
  return {
    scope: new Scope(
      () => [],
      settings,
      (lists) => told.push(lists),
    ),
    told,
  };
}

it('reports changes in quick succession once', () => {
  const { scope, told } = scopeThatTells();
  scope.changes(['tools']);
  scope.changes(['prompts', 'tools']);
  expect(told).toEqual([]);
  vi.runAllTimers();
  expect(told).toEqual([['tools', 'prompts']]);
});

it('reports pending changes once when it is flushed', () => {
  const { scope, told } = scopeThatTells();
  scope.flush();
  expect(told).toEqual([]);
  scope.changes(['tools']);
  scope.flush();
  expect(told).toEqual([['tools']]);
  vi.runAllTimers();
  expect(told).toHaveLength(1);
});
