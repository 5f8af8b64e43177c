import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RawSession } from '../helpers/raw-http.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Connections, SoakClient } from './client.ts';
import { Fleet, type FleetTerms, type Target } from './fleet.ts';
import { Load, type LoadSize } from './load.ts';
import {
  type Holdings,
  isFlat,
  leaks,
  MAX_GROWTH,
  Monitor,
  megabytes,
  type Quarters,
  quarters,
} from './monitor.ts';
import { MARKER, markedProcesses } from './processes.ts';
import { Random } from './random.ts';
import { Verdict } from './verdict.ts';

export interface SoakOptions {
  seed: number;
  clients: number;
  /** Whether faults are injected into servers. */
  faults: boolean;
  load: LoadSize;
  fleet: FleetTerms;
  /** Whether files, timers and other resources are counted too, which takes a minute because some are kept that long. */
  countsHoldings: boolean;
}

export interface SoakReport {
  options: SoakOptions;
  servers: number;
  verdict: Verdict;
  faults: ReadonlyMap<string, number>;
  restarts: number;
  rss: Quarters;
  live: Quarters;
  /** Undefined if they were not counted. */
  holdings: { before: Holdings; after: Holdings } | undefined;
}

/** The defaults of tests and long runs. */
export const wholeFleet = {
  clients: 200,
  load: { callsPerSecond: 300, callsAtOnce: 400, steps: 20, pauses: 40 },
  countsHoldings: true,
};

/** Once a second, at the usual rate. */
const FAULT_EVERY_CALLS = 300;
const FAULTS_AT_ONCE = 2;
/** A circuit breaker may stay open for a minute. */
const RECOVERY_MS = 90_000;
/** Cancelled calls are remembered for half a minute, idle connections for some seconds. */
const SETTLE_MS = 60_000;
const STOP_MS = 30_000;

/** Runs Switchboard under load and faults, and reports every violation. */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const marker = randomUUID();
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-soak-'));
  const ledger = join(folder, 'ledger');
  const probePath = join(folder, 'probe');
  await writeFile(ledger, '');
  await using fleet = await Fleet.start(marker, ledger, options.fleet);
  await using switchboard = await startSwitchboard(...fleet.configuration(), {
    env: {
      [MARKER]: marker,
      SOAK_PROBE: probePath,
      NODE_OPTIONS: `--import=${new URL('./probe.ts', import.meta.url)}`,
    },
  });
  const pid = switchboard.process.pid!;
  const verdict = new Verdict();
  const monitor = new Monitor(pid, probePath);
  try {
    const targets = await warmUp(switchboard.url, fleet);
    const before = options.countsHoldings ? await monitor.atRest() : undefined;
    const readyBefore = readyIn(switchboard);

    await loadAndStrike({ options, switchboard, fleet, targets, verdict, monitor });

    const live = quarters(monitor.live);
    if (!isFlat(live)) verdict.violation(`memory in use grew: ${megabytes(live)} MB by quarter`);
    const holdings = before && { before, after: await monitor.settled(before, SETTLE_MS) };
    if (holdings !== undefined) judgeHoldings(holdings, monitor, verdict);
    const restarts = readyIn(switchboard) - readyBefore;
    await stopAndLookAround(switchboard, marker, verdict);
    verdict.judgeLedger((await readFile(ledger, 'utf8')).split('\n').filter((line) => line !== ''));
    return {
      ...{ options, servers: fleet.size, verdict, faults: fleet.faults, restarts },
      ...{ rss: quarters(monitor.rss), live, holdings },
    };
  } finally {
    for (const found of markedProcesses(marker)) if (found.pid !== pid) process.kill(found.pid, 'SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
}

function judgeHoldings(
  { before, after }: { before: Holdings; after: Holdings },
  monitor: Monitor,
  verdict: Verdict,
) {
  for (const leak of leaks(before, after)) verdict.violation(`leaked ${leak}`);
  if (after.openFiles > before.openFiles) verdict.violation(`open files: ${monitor.describeOpenFiles()}`);
  for (const warning of after.warnings) verdict.violation(`Node warned: ${warning}`);
  // Code that was compiled meanwhile stays in memory.
  if (after.liveMegabytes > before.liveMegabytes * MAX_GROWTH + 5) {
    verdict.violation(`${after.liveMegabytes.toFixed()} MB are in use when all clients have left`);
  }
}

/** Calls everything until all servers run, including replicas, so that resources can be compared with the end. */
async function warmUp(url: string, fleet: Fleet): Promise<Target[]> {
  const session = await RawSession.open(url);
  await session.toolNames();
  const targets = fleet.targets();
  await Promise.all(
    targets.flatMap(({ prefix }) =>
      Array.from({ length: 10 }, () => session.callText(`${prefix}echo`, { text: 'warm up', delayMs: 100 })),
    ),
  );
  await session.end();
  return targets;
}

interface Run {
  options: SoakOptions;
  switchboard: RunningSwitchboard;
  fleet: Fleet;
  targets: Target[];
  verdict: Verdict;
  monitor: Monitor;
}

async function loadAndStrike({ options, switchboard, fleet, targets, verdict, monitor }: Run): Promise<void> {
  await using connections = new Connections(switchboard.url);
  const complain = (what: string) => verdict.violation(what);
  const clients = await Promise.all(
    Array.from({ length: options.clients }, (_, number) => SoakClient.open(number, connections, complain)),
  );
  const load = new Load(clients, targets, options.load, new Random(options.seed), verdict);
  const faultRandom = new Random(options.seed + 1);
  let calls = 0;
  const strike = () => {
    if (!options.faults || ++calls % FAULT_EVERY_CALLS !== 0) return;
    for (let count = 0; count < FAULTS_AT_ONCE; count++) fleet.strike(faultRandom, switchboard.process.pid!);
  };
  const stop = new AbortController();
  const died = once(switchboard.process, 'exit').then(([code, signal]) => {
    throw new Error(`Switchboard ended with ${code ?? signal} in the middle of the load`);
  });
  const loaded = load.run(stop.signal, () => monitor.sample(), strike);
  await Promise.race([loaded, died]).finally(() => stop.abort());
  await fleet.recovered();
  await Promise.all(targets.map((target) => recover(load, target, verdict)));
  await Promise.all(clients.map((client) => client.end()));
}

/** After the last fault, every server must recover without help. */
async function recover(load: Load, target: Target, verdict: Verdict): Promise<void> {
  const deadline = Date.now() + RECOVERY_MS;
  while (!(await load.tryOnce(target))) {
    if (Date.now() > deadline) {
      verdict.violation(`${target.prefix}echo did not recover within ${RECOVERY_MS} ms`);
      return;
    }
    await delay(250);
  }
}

async function stopAndLookAround(
  switchboard: RunningSwitchboard,
  marker: string,
  verdict: Verdict,
): Promise<void> {
  const exited = once(switchboard.process, 'exit');
  const impatience = setTimeout(() => switchboard.process.kill('SIGKILL'), STOP_MS);
  switchboard.process.kill('SIGTERM');
  const [code, signal] = (await exited) as [number | null, string | null];
  clearTimeout(impatience);
  if (code !== 0) verdict.violation(`Switchboard ended with ${code ?? signal} on SIGTERM`);
  for (const { pid, name } of markedProcesses(marker)) {
    verdict.violation(`process ${pid} of ${name} is still there after Switchboard has ended`);
  }
  for (const { event, message } of switchboard.events) {
    if (event === 'warning' && String(message).includes('internal error')) verdict.violation(String(message));
  }
}

function readyIn({ events }: RunningSwitchboard): number {
  return events.filter(({ event, state }) => event === 'server' && state === 'ready').length;
}
