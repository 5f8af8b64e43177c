import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { formatReport } from './report.ts';
import { runSoak } from './soak.ts';

// Processes and memory are read from /proc.
it.runIf(process.platform === 'linux')(
  'answers every call once, from its own server, with constant memory under load and faults',
  async () => {
    const seed = Number(process.env.SOAK_SEED ?? randomInt(2 ** 31));
    console.info(`seed ${seed}`);
    const report = await runSoak({
      ...{ seed, faults: true, clients: 60, countsHoldings: false },
      // Much progress per call, so that a few calls reveal a leak.
      load: { until: { calls: 1_200 }, callsPerSecond: 1_000, callsAtOnce: 80, steps: 500, pauses: 12 },
      fleet: { servers: 'few', settings: { replayMs: 100, keepAliveMs: 1_000 } },
    });
    console.info(formatReport(report));
    expect(report.verdict.violations).toEqual([]);
    expect([...report.faults.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
  },
);
