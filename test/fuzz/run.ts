/** npm run fuzz -- --cases 100000 --seed 7 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { type FuzzOptions, runFuzz } from './fuzz.ts';
import { formatReport } from './report.ts';

const usage = `usage: npm run fuzz -- [options]

  --cases 10000    how many cases
  --seed 7         the same seed makes the same cases; without it, one is chosen and printed
  --target all     front: what clients send; upstream: what servers say; api: what is sent to the REST API
  --replay 17      runs only this case of the seed, or those from 17 to 20 (17-20), and shows what is sent and what comes back
  --help           this text`;

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '10000' },
    seed: { type: 'string' },
    target: { type: 'string', default: 'all' },
    replay: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed ?? randomInt(2 ** 31));
const range = /^(\d+)(?:-(\d+))?$/.exec(values.replay ?? `0-${Number(values.cases) - 1}`);
const isSound =
  Number.isInteger(seed) && range !== null && ['front', 'upstream', 'api', 'all'].includes(values.target);
if (values.help || !isSound) {
  console.info(usage);
  process.exit(values.help ? 0 : 2);
}
const first = Number(range[1]);
const end = Number(range[2] ?? first) + 1;
console.info(`cases ${first} to ${end - 1} of seed ${seed} …`);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
const report = await runFuzz({
  ...{ seed, first, end, target: values.target as FuzzOptions['target'] },
  progress: (done, underWay) => {
    const oldest = Math.min(...underWay.values());
    console.info(`${done} cases done${underWay.size === 0 ? '' : `, the oldest under way is ${oldest}`}`);
  },
  found: (line) => console.info(`! ${line}`),
  ...(values.replay === undefined ? {} : { tell: (what: string) => console.info(what) }),
});
console.info(formatReport(report));
process.exitCode = report.total === 0 ? 0 : 1;
