import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { runFuzz } from './fuzz.ts';
import { formatReport } from './report.ts';

const CASES = 100_000;

it.runIf(process.platform === 'linux')(
  'whatever clients send, servers say and programs ask for, a hundred thousand times',
  { timeout: 60 * 60_000 },
  async () => {
    const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));
    console.info(`seed ${seed}`);
    const report = await runFuzz({ seed, first: 0, end: CASES, target: 'all' });
    console.info(formatReport(report));
    expect(report.findings).toEqual([]);
  },
);
