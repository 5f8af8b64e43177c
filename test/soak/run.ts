/** npm run soak -- --minutes 30 --seed 7 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { formatReport } from './report.ts';
import { runSoak } from './soak.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '1' }, seed: { type: 'string' } },
});
const seed = Number(values.seed ?? randomInt(2 ** 31));
const seconds = Number(values.minutes) * 60;
if (!(seconds > 0) || !Number.isInteger(seed)) {
  console.error('usage: npm run soak -- [--minutes 30] [--seed 7]');
  process.exit(2);
}
console.info(`${seconds} s with seed ${seed} …`);
const report = await runSoak({ seconds, seed });
console.info(formatReport(report));
process.exitCode = report.verdict.violationCount === 0 ? 0 : 1;
