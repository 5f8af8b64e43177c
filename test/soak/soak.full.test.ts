import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { formatReport } from './report.ts';
import { runSoak, wholeFleet } from './soak.ts';

// Processes, open files and memory are read from /proc.
it.runIf(process.platform === 'linux')(
  'answers every call once, from its own server, and leaves nothing behind under load and faults',
  { timeout: 10 * 60_000 },
  async () => {
    const seed = Number(process.env.SOAK_SEED ?? randomInt(2 ** 31));
    console.info(`seed ${seed}`);
    const report = await runSoak({
      ...{ ...wholeFleet, seed, faults: true },
      // A minute on an idle machine.
      load: { ...wholeFleet.load, until: { calls: 18_000 } },
      // The default of a minute would let memory grow for the whole run.
      fleet: { servers: 'all', settings: { replayMs: 1_000 } },
    });
    console.info(formatReport(report));
    expect(report.verdict.violations).toEqual([]);
    expect(report.faults.get('kill')).toBeGreaterThan(0);
  },
);
