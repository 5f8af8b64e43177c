import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RawSession } from '../helpers/raw-session.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Connections, SoakClient } from './client.ts';
import { Fleet, type Target } from './fleet.ts';
import { Load } from './load.ts';
import { type Holdings, isFlat, leaks, Monitor, quarters } from './monitor.ts';
import { MARKER, markedProcesses } from './processes.ts';
import { Random } from './random.ts';
import { Verdict } from './verdict.ts';

export interface SoakOptions {
  seconds: number;
  seed: number;
}

export interface SoakReport {
  seed: number;
  seconds: number;
  clients: number;
  servers: number;
  verdict: Verdict;
  faults: ReadonlyMap<string, number>;
  restarts: number;
  rss: { first: number; second: number; last: number };
  live: { second: number; last: number };
  before: Holdings;
  after: Holdings;
}

const CLIENTS = 200;
const CALLS_PER_SECOND = 300;
const FAULT_EVERY_MS = 1_000;
const FAULTS_AT_ONCE = 2;
/** A circuit breaker may keep a server closed for a minute. */
const RECOVERY_MS = 90_000;
/** Cancelled calls are remembered for half a minute, idle connections for some seconds. */
const SETTLE_MS = 60_000;
const STOP_MS = 30_000;

/** Runs Switchboard under load and faults, and finds out whether anything went wrong. */
export async function runSoak({ seconds, seed }: SoakOptions): Promise<SoakReport> {
  const marker = randomUUID();
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-soak-'));
  const ledger = join(folder, 'ledger');
  const probePath = join(folder, 'probe');
  await writeFile(ledger, '');
  await using fleet = await Fleet.start(marker, ledger);
  await using switchboard = await startSwitchboard(fleet.configuration(), {
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
    const before = await monitor.atRest();
    const readyBefore = readyIn(switchboard);

    monitor.startSampling();
    await loadAndStrike({ seconds, seed, switchboard, fleet, targets, verdict });
    monitor.stopSampling();

    const after = await monitor.settled(before, SETTLE_MS);
    for (const leak of leaks(before, after)) verdict.violation(`leaked ${leak}`);
    if (after.openFiles > before.openFiles) verdict.violation(`open files: ${monitor.describeOpenFiles()}`);
    for (const warning of after.warnings) verdict.violation(`Node warned: ${warning}`);
    const rss = quarters(monitor.rss);
    const live = quarters(monitor.live);
    if (!isFlat(live)) {
      verdict.violation(`memory in use grew from ${live.second.toFixed()} MB to ${live.last.toFixed()} MB`);
    }
    if (!isFlat({ second: before.liveMegabytes, last: after.liveMegabytes })) {
      verdict.violation(`${after.liveMegabytes.toFixed()} MB are in use when all clients have left`);
    }
    const restarts = readyIn(switchboard) - readyBefore;
    await stopAndLookAround(switchboard, marker, verdict);
    verdict.judgeLedger((await readFile(ledger, 'utf8')).split('\n').filter((line) => line !== ''));
    return {
      ...{ seed, seconds, clients: CLIENTS, servers: fleet.size, verdict, faults: fleet.faults, restarts },
      ...{ rss: { first: monitor.rss[0] ?? 0, ...rss }, live, before, after },
    };
  } finally {
    monitor.stopSampling();
    for (const found of markedProcesses(marker)) if (found.pid !== pid) process.kill(found.pid, 'SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
}

/** Calls everything until it is started, replicas too, so that what is held then can be compared with the end. */
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

interface Run extends SoakOptions {
  switchboard: RunningSwitchboard;
  fleet: Fleet;
  targets: Target[];
  verdict: Verdict;
}

async function loadAndStrike({ seconds, seed, switchboard, fleet, targets, verdict }: Run): Promise<void> {
  await using connections = new Connections(switchboard.url);
  const complain = (what: string) => verdict.violation(what);
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, (_, number) => SoakClient.open(number, connections, complain)),
  );
  const load = new Load(clients, targets, new Random(seed), verdict);
  const faultRandom = new Random(seed + 1);
  const striking = setInterval(() => {
    for (let count = 0; count < FAULTS_AT_ONCE; count++) fleet.strike(faultRandom, switchboard.process.pid!);
  }, FAULT_EVERY_MS);
  const stop = new AbortController();
  const died = once(switchboard.process, 'exit').then(([code, signal]) => {
    throw new Error(`Switchboard ended with ${code ?? signal} in the middle of the load`);
  });
  await Promise.race([load.run(seconds, CALLS_PER_SECOND, stop.signal), died]).finally(() => {
    clearInterval(striking);
    stop.abort();
  });
  await fleet.recovered();
  await Promise.all(targets.map((target) => recover(load, target, verdict)));
  await Promise.all(clients.map((client) => client.end()));
}

/** Once nothing bad happens any more, every server has to be of use again, by itself. */
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
