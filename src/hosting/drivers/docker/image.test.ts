import { describe, expect, it } from 'vitest';
import { PullProgress, type PullStep } from './image.ts';

const MEGABYTE = 1024 * 1024;

describe('the progress of a pull', () => {
  it('counts layers and received bytes, and reports now and then', () => {
    let now = 0;
    const lines: string[] = [];
    const progress = new PullProgress(
      (line) => lines.push(line),
      () => now,
    );
    const add = (...steps: PullStep[]) => {
      for (const step of steps) progress.add(step);
    };
    add({ status: 'Pulling from mcp/fetch', id: 'latest' });
    expect(lines).toEqual([]);
    add({ id: 'a', status: 'Pulling fs layer' }, { id: 'b', status: 'Already exists' });
    expect(lines).toEqual(['0 of 1 layers, 0 MB so far']);
    now = 1_999;
    add({ id: 'a', status: 'Downloading', progressDetail: { current: MEGABYTE, total: 9 * MEGABYTE } });
    expect(lines).toHaveLength(1);
    now = 2_000;
    add({ id: 'a', status: 'Downloading', progressDetail: { current: 2 * MEGABYTE, total: 9 * MEGABYTE } });
    expect(lines.at(-1)).toBe('1 of 2 layers, 2 MB so far');
    now = 4_000;
    add({ id: 'a', status: 'Download complete', progressDetail: {} });
    expect(lines.at(-1)).toBe('2 of 2 layers, 9 MB so far');
  });
});
