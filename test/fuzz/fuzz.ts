import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Cases, type TargetName } from './cases.ts';
import { Findings } from './findings.ts';
import { fuzzApi, prepareApi } from './targets/api.ts';
import { fuzzFront } from './targets/front.ts';
import type { Ground } from './targets/target.ts';
import { fuzzUpstream, HostileServers } from './targets/upstream.ts';
import { type Figures, Watch } from './watch.ts';

export interface FuzzOptions {
  seed: number;
  /** The first case, and the one behind the last. */
  first: number;
  end: number;
  target: TargetName | 'all';
  /** Told of how far it is, now and then, and where each lane is. */
  progress?: (done: number, underWay: ReadonlyMap<string, number>) => void;
  found?: (line: string) => void;
  /** Told of all that a case sends and gets. */
  tell?: (what: string) => void;
}

export interface FuzzReport {
  seconds: number;
  done: Record<TargetName, number>;
  /** What came of the cases: how often each. */
  outcomes: ReadonlyMap<string, number>;
  figures: Figures | undefined;
  findings: string[];
  total: number;
}

const PROGRESS_MS = 10_000;
const PATIENCE_MS = 10 * 60_000;

const settings = {
  naming: 'always',
  // Servers that cannot be reached come all the time, through the API: nobody waits for them.
  discoveryWaitMs: 20,
  keepAliveMs: 1_000,
  // So many come and never leave that they have to be forgotten soon.
  maxSessions: 5_000,
  sessionIdleMs: 20_000,
  // A server that is lost is back at once.
  backoffFirstMs: 1,
  backoffMaxMs: 10,
  breakerFailures: 1_000,
  breakerOpenMs: 1,
  ejectAfter: 0,
  // No verdict depends on how fast the machine is.
  connectTimeoutMs: PATIENCE_MS,
  timeoutMs: PATIENCE_MS,
  // Nothing is ever asked of anybody outside.
  chat: { baseUrl: 'http://127.0.0.1:9' },
  hosting: { engine: '/nowhere/docker.sock' },
};

/** Runs the cases against a Switchboard of its own. */
export async function runFuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { seed, first, end, target } = options;
  const only = target === 'all' ? undefined : target;
  const findings = new Findings(
    (index) => `npm run fuzz -- --seed ${seed} --target ${target} --replay ${index}`,
    options.found,
  );
  const outcomes = new Map<string, number>();
  const done = { front: 0, upstream: 0, api: 0 };
  const cases = new Cases(seed, first, end, only);
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-fuzz-'));
  const probePath = join(folder, 'probe.json');
  try {
    await using hostile = await HostileServers.start(seed, options.tell);
    await using switchboard = await startSwitchboard(
      {
        control: fixtureServer('answers-after-cancel', { FIXTURE_NAME: 'control' }),
        echo: fixtureServer('answers-after-cancel', { FIXTURE_NAME: 'echo' }),
        ...hostile.entries(),
      },
      settings,
      {
        ...(process.env.VITEST && { database: 'shared' }),
        env: {
          SOAK_PROBE: probePath,
          NODE_OPTIONS: `--import=${new URL('../soak/probe.ts', import.meta.url)}`,
        },
      },
    );
    // Whatever ends this process ends Switchboard.
    const end = () => switchboard.process.kill();
    process.once('exit', end);
    switchboard.process.once('exit', () => process.off('exit', end));
    await using watch = new Watch(switchboard, probePath, findings);
    const ground: Ground = {
      port: Number(new URL(switchboard.baseUrl).port),
      ...{ cases, findings, tell: options.tell, underWay: new Map() },
      done: (index, outcome) => {
        const name = cases.targetOf(index);
        done[name]++;
        const kind = `${name} ${outcome}`;
        outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1);
      },
    };
    const progress = setInterval(() => {
      options.progress?.(done.front + done.upstream + done.api, ground.underWay);
    }, PROGRESS_MS);
    let figures: Figures | undefined;
    const started = performance.now();
    try {
      await hostile.warmUp(ground);
      const api = await prepareApi(ground);
      await watch.start();
      const work = Promise.all([fuzzFront(ground), fuzzUpstream(ground, hostile), fuzzApi(ground, api)]);
      await Promise.race([work, watch.stuck(ground.underWay)]);
      await api.cleanUp();
      figures = await watch.finish();
    } catch (error) {
      findings.add((error as Error).stack ?? String(error));
    } finally {
      clearInterval(progress);
    }
    const seconds = (performance.now() - started) / 1_000;
    return { seconds, done, outcomes, figures, findings: findings.lines(), total: findings.total };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
