/** npm run soak -- --help */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { formatReport } from './report.ts';
import { runSoak, wholeFleet } from './soak.ts';

const help = `npm run soak -- [options]

200 clients call 12 servers, 300 times a second, while servers are killed, restarted and cut off. Ends with a report,
and with status 1 where a call was not answered as it has to be, something was left behind, or memory in use was not
flat from the second quarter on (10 %).

  --minutes N    how long the load lasts (1)
  --seed N       the same calls and faults as a run before (random)
  --no-faults    nothing bad happens to the servers
  --help         this text`;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string' },
    'no-faults': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.info(help);
  process.exit(0);
}
const seed = Number(values.seed ?? randomInt(2 ** 31));
const seconds = Number(values.minutes) * 60;
if (!(seconds > 0) || !Number.isInteger(seed)) {
  console.error(help);
  process.exit(2);
}
const faults = !values['no-faults'];
console.info(`${seconds} s with seed ${seed}, ${faults ? 'with' : 'without'} faults …`);
const report = await runSoak({
  ...{ ...wholeFleet, seed, faults },
  load: { ...wholeFleet.load, until: { seconds } },
  fleet: { servers: 'all', settings: {} },
});
console.info(formatReport(report));
process.exitCode = report.verdict.violationCount === 0 ? 0 : 1;
