/** `npm run bench`: compares Switchboard, the server called directly, and other gateways in one run. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chart } from './chart.ts';
import type { Experiment } from './experiment.ts';
import { judge } from './goals.ts';
import { type HostingResult, measureHosting } from './hosting.ts';
import { Lab } from './lab.ts';
import { type Placement, placeProcesses } from './processes.ts';
import { markdownReport, type Results, rawReport, textReport } from './report.ts';
import { measureCalls, measureEras, measureLists, measureSessions, measureStarts } from './scenarios.ts';
import { Unavailable } from './starting.ts';
import { isBefore, isOwn, isPeer, type VariantName, variantNames } from './variants.ts';

/** With more load from other work, ratios become unreliable. */
const BUSY_LOAD = 0.7;

const usage = `npm run bench -- [options]
  --quick            few cycles, for a quick look
  --cycles N         cycles of each scenario (default 12)
  --only REGEXP      only matching scenarios: call/200B/16, eras/200B, list/1000, sessions/direct, start/mcp-hub, hosting, ...
  --no-peers         without the other gateways
  --no-switchboard   without Switchboard
  --program PATH     Switchboard's main file, or the folder of a built clone (default: this one; src/main.ts runs the sources)
  --against PATH     an older build to compare with, in the same cycles
  --json FILE        write all samples
  --docs FOLDER      where to write benchmark.md and benchmark.svg (a complete run writes them to docs/)`;

const { values } = parseArgs({
  allowNegative: true,
  options: {
    quick: { type: 'boolean', default: false },
    cycles: { type: 'string' },
    only: { type: 'string', default: '' },
    peers: { type: 'boolean', default: true },
    switchboard: { type: 'boolean', default: true },
    program: { type: 'string', default: fileURLToPath(new URL('../dist/main.js', import.meta.url)) },
    against: { type: 'string' },
    json: { type: 'string' },
    docs: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(usage);
else await main();

async function main(): Promise<void> {
  if (process.platform !== 'linux')
    throw new Error('the benchmark reads CPU time from /proc, so it needs Linux');
  const cycles = Number(values.cycles ?? (values.quick ? 3 : 12));
  if (!Number.isInteger(cycles) || cycles < 1)
    throw new Error(`--cycles must be a positive integer, not ${values.cycles}`);
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-bench-'));
  const placement = placeProcesses();
  const programs = {
    current: programAt(values.program),
    before: values.against && programAt(values.against),
  };
  const lab = new Lab(placement, programs, folder);
  const notes = new Set<string>();
  const [loadBefore = 0] = loadavg();
  if (loadBefore > BUSY_LOAD)
    notes.add(`the machine was busy (load ${loadBefore.toFixed(1)}) before the run started`);
  const note = (text: string) => {
    if (!notes.has(text)) console.error(`       ${text}`);
    notes.add(text);
  };
  const only = new RegExp(values.only);
  const startedAt = performance.now();
  const experiment: Experiment = {
    lab,
    variants: variantNames.filter(isTakingPart),
    cycles,
    startRepeats: values.quick ? 2 : 5,
    isWanted: (scenario) => only.test(scenario),
    progress: (text) =>
      console.error(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${text}`),
    onFailure(name, error) {
      // Another gateway may fail, which is reported; Switchboard and the server must not.
      if (!isPeer(name) && !(error instanceof Unavailable)) throw error;
      note(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    },
    onMissing: (what, { message }) => note(`${what} was not measured: ${message}`),
  };
  // Ctrl-C must stop the gateways too.
  process.once('SIGINT', () => void lab.stopAll().finally(() => process.exit(130)));
  try {
    const results: Results = {
      calls: await measureCalls(experiment),
      eras: await measureEras(experiment),
      lists: await measureLists(experiment),
      sessions: await measureSessions(experiment),
      starts: await measureStarts(experiment),
      hosting: await measureHostingOn(placement, experiment),
      notes: [...notes],
      placement: placement.description,
      cycles,
      command: ['npm run bench', ...(process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : [])].join(
        ' ',
      ),
    };
    publish(results);
  } finally {
    await lab.stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs last, because its processes are not pinned to a CPU. */
async function measureHostingOn(placement: Placement, experiment: Experiment): Promise<HostingResult[]> {
  if (!values.switchboard) return [];
  placement.release();
  return measureHosting(experiment);
}

function publish(results: Results): void {
  const verdicts = judge(results);
  console.log(textReport(results, verdicts));
  if (values.json !== undefined) writeFileSync(values.json, rawReport(results));
  const hasAll =
    results.calls.every(({ samples }) => samples.has('switchboard-stdio')) &&
    results.eras.every(({ samples }) => samples.has('switchboard-modern-stdio'));
  const isComplete =
    hasAll && values.peers && !values.quick && values.only === '' && values.against === undefined;
  const folder = values.docs ?? (isComplete ? fileURLToPath(new URL('../docs', import.meta.url)) : undefined);
  if (folder === undefined) {
    console.error('docs/ was not updated: only a complete run is written there (or use --docs FOLDER)');
    return;
  }
  writeFileSync(join(folder, 'benchmark.md'), markdownReport(results, verdicts));
  writeFileSync(join(folder, 'benchmark.svg'), chart(results));
}

function isTakingPart(name: VariantName): boolean {
  if (isPeer(name)) return values.peers;
  if (isBefore(name) && values.against === undefined) return false;
  return values.switchboard || !isOwn(name);
}

/** A folder is a clone: use its built program. */
function programAt(place: string): string {
  const path = resolve(place);
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  return isFolder ? join(path, 'dist', 'main.js') : path;
}
