import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { onlyOnce } from './only-once.ts';

describe('work that runs only once', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'switchboard-once-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is awaited by all callers', async () => {
    const { promise: allowed, resolve: allow } = Promise.withResolvers<void>();
    let runs = 0;
    let settled = 0;
    const work = () => {
      runs++;
      return allowed;
    };
    const asked = [1, 2, 3].map(() => onlyOnce(folder, 'work', work).then(() => settled++));
    // By now, callers that do not wait would be done.
    await onlyOnce(folder, 'other work', async () => {});
    expect(settled).toBe(0);
    allow();
    await Promise.all(asked);
    await onlyOnce(folder, 'work', work);
    expect(runs).toBe(1);
  });

  it('fails for all callers, and is not retried', async () => {
    const work = () => Promise.reject(new Error('no engine'));
    await expect(onlyOnce(folder, 'work', work)).rejects.toThrow('no engine');
    await expect(onlyOnce(folder, 'work', async () => {})).rejects.toThrow('no engine');
  });

  it('is not awaited when its process is gone', async () => {
    const { pid } = spawnSync('true');
    writeFileSync(join(folder, 'work.lock'), String(pid));
    await expect(onlyOnce(folder, 'work', async () => {})).rejects.toThrow('ended before it was done');
  });
});
