import { expect, it } from 'vitest';
import { runFuzz } from './fuzz.ts';
import { formatReport } from './report.ts';

const SEED = 20_261_117;
/** The long suite runs 100,000 others. */
const CASES = 3_000;

// Open files, processes and memory are read from /proc.
it.runIf(process.platform === 'linux')(
  'answers every request once and leaves nothing behind, for arbitrary input from clients, servers and API users',
  { timeout: 10 * 60_000 },
  async () => {
    const report = await runFuzz({ seed: SEED, first: 0, end: CASES, target: 'all' });
    console.info(formatReport(report));
    expect(report.findings).toEqual([]);
    expect(report.done.front + report.done.upstream + report.done.api).toBe(CASES);
    // Generated cases prove little unless enough of them succeed.
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
