import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { formatReport } from './report.ts';
import { runSoak, wholeFleet } from './soak.ts';

// Processes, open files and memory are read from /proc.
it.runIf(process.platform === 'linux')(
  'under load and faults, every call is answered once, by its own server, and nothing is left behind',
  { timeout: 10 * 60_000 },
  async () => {
    const seed = Number(process.env.SOAK_SEED ?? randomInt(2 ** 31));
    console.info(`seed ${seed}`);
    const report = await runSoak({
      ...{ ...wholeFleet, seed, faults: true },
      // A minute, where the machine has nothing else to do.
      load: { ...wholeFleet.load, until: { calls: 18_000 } },
      // What is kept for a minute would still be growing.
      fleet: { servers: 'all', settings: { replayMs: 1_000 } },
    });
    console.info(formatReport(report));
    expect(report.verdict.violations).toEqual([]);
    expect(report.faults.get('kill')).toBeGreaterThan(0);
  },
);
