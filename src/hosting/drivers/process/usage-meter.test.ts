import { describe, expect, it } from 'vitest';
import { startScript } from '../../../../test/helpers/processes.ts';
import { parseCpuMs, parseResident, sumOfPs, UsageMeter } from './usage-meter.ts';

const MB = 1024 ** 2;

describe('the usage of a process group', () => {
  it('includes all its processes', async () => {
    const hog = `'${process.execPath}' -e 'const held = Buffer.alloc(${64 * MB}, 1); console.log("ready"); setInterval(() => held, 1_000)'`;
    await using alone = await startScript(`exec ${hog}`);
    await using several = await startScript(`${hog} | { read word; ${hog}; }`);
    const one = await new UsageMeter(alone.pid).read();
    const two = await new UsageMeter(several.pid).read();
    expect(one.memoryBytes).toBeGreaterThan(64 * MB);
    expect(two.memoryBytes).toBeGreaterThan(one.memoryBytes + 64 * MB);
  });

  it('is a share of one core since the last read', async () => {
    await using busy = await startScript('echo ready; while :; do :; done');
    const meter = new UsageMeter(busy.pid);
    expect((await meter.read()).cpuPercent).toBe(undefined);
    // The process clock has coarse steps, so several must pass even on a busy machine.
    let usage = await meter.read();
    while (usage.cpuPercent === 0) usage = await meter.read();
    expect(usage.cpuPercent).toBeGreaterThan(0);
  });

  it('is empty after it ended', async () => {
    const gone = await startScript('echo ready');
    await gone.ended;
    const meter = new UsageMeter(gone.pid);
    await meter.read();
    expect(await meter.read()).toEqual({ cpuPercent: 0, memoryBytes: 0, diskBytes: undefined });
  });
});

it('parses CPU times after any name, including those of exited children', () => {
  const stat = '7 (a) b (c) S 1 7 7 0 -1 4194560 90 91 92 93 10 20 30 40 20 0 1 0 12345 1 1';
  expect(parseCpuMs(stat)).toBe(1_000);
});

it('parses resident memory, and accepts a process without any', () => {
  expect(parseResident('Name:\tnode\nVmRSS:\t   2048 kB\nThreads:\t1\n')).toBe(2 * MB);
  expect(parseResident('Name:\tkthreadd\nThreads:\t1\n')).toBe(0);
});

it('sums the output of ps by group', () => {
  const lines = ['  7  1024   0:01.50', '  8  9999  10:00.00', '  7  2048 1-01:00:01', ''];
  expect(sumOfPs(lines.join('\n'), 7)).toEqual({ cpuMs: 90_002_500, memoryBytes: 3 * MB });
});
