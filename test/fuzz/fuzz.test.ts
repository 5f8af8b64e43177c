import { expect, it } from 'vitest';
import { runFuzz } from './fuzz.ts';
import { formatReport } from './report.ts';

const SEED = 20_261_117;
/** The long suite has 100,000 others. */
const CASES = 3_000;

// Open files, processes and memory are read from /proc.
it.runIf(process.platform === 'linux')(
  'whatever clients send, servers say and programs ask for, every request is answered once, and nothing is left behind',
  { timeout: 10 * 60_000 },
  async () => {
    const report = await runFuzz({ seed: SEED, first: 0, end: CASES, target: 'all' });
    console.info(formatReport(report));
    expect(report.findings).toEqual([]);
    expect(report.done.front + report.done.upstream + report.done.api).toBe(CASES);
    // What is made here proves little unless enough of it comes through.
    for (const kind of [
      'front result',
      'upstream odd-http result',
      'upstream odd-sse result',
      'upstream lists 200',
      'api 200',
    ]) {
      expect(report.outcomes.get(kind), kind).toBeGreaterThan(10);
    }
  },
);
