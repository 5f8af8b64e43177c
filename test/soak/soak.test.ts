import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { formatReport } from './report.ts';
import { runSoak } from './soak.ts';

const SECONDS = 60;

// Processes, open files and memory are read from /proc.
it.runIf(process.platform === 'linux')(
  'under load and faults, every call is answered once, by its own server, and nothing is left behind',
  { timeout: 10 * 60_000 },
  async () => {
    const seed = Number(process.env.SOAK_SEED ?? randomInt(2 ** 31));
    console.info(`seed ${seed}`);
    const report = await runSoak({ seconds: SECONDS, seed });
    console.info(formatReport(report));
    expect(report.verdict.violations).toEqual([]);
    expect(report.faults.get('kill')).toBeGreaterThan(0);
  },
);
