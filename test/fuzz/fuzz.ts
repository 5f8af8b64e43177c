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
  /** The first case, and the one after the last. */
  first: number;
  end: number;
  target: TargetName | 'all';
  /** Reports progress from time to time, with the current case of each lane. */
  progress?: (done: number, underWay: ReadonlyMap<string, number>) => void;
  found?: (line: string) => void;
  /** Prints all input and output of a case. */
  tell?: (what: string) => void;
}

export interface FuzzReport {
  seconds: number;
  done: Record<TargetName, number>;
  /** How often each outcome occurred. */
  outcomes: ReadonlyMap<string, number>;
  figures: Figures | undefined;
  findings: string[];
  total: number;
}

const PROGRESS_MS = 10_000;
const PATIENCE_MS = 10 * 60_000;

const settings = {
  naming: 'always',
  // The API keeps adding unreachable servers, so lists must not wait for them.
  discoveryWaitMs: 20,
  keepAliveMs: 1_000,
  // Many sessions are never closed, so they have to be evicted soon.
  maxSessions: 5_000,
  sessionIdleMs: 20_000,
  // A lost server reconnects at once.
  backoffFirstMs: 1,
  backoffMaxMs: 10,
  breakerFailures: 1_000,
  breakerOpenMs: 1,
  ejectAfter: 0,
  // No result depends on the speed of the machine.
  connectTimeoutMs: PATIENCE_MS,
  timeoutMs: PATIENCE_MS,
  // No request leaves the machine.
  chat: { baseUrl: 'http://127.0.0.1:9' },
  hosting: { engine: '/nowhere/docker.sock' },
};

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
    // Switchboard must not outlive this process.
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
