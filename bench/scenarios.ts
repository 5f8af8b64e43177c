/** Measures calls, lists, memory of open sessions, and the time from start to the first list. */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from './client.ts';
import type { Era } from './eras.ts';
import { attempt, type Experiment, firstList, measure, partakers, startAll } from './experiment.ts';
import type { HttpConnection } from './http-connection.ts';
import type { Running } from './lab.ts';
import { type Contender, median, type Samples } from './measure.ts';
import { type PayloadName, payloadNames } from './payloads.ts';
import { descendantBytes, residentBytes } from './processes.ts';
import {
  type CurrentName,
  callNames,
  currentOf,
  directOf,
  eraNames,
  isBefore,
  type VariantName,
} from './variants.ts';

const CALL_CONCURRENCY = [1, 16, 64];
const ERA_CONCURRENCY = [16];
const LIST_CONCURRENCY = 4;
const LISTS: { toolCount: number; era: Era }[] = [
  { toolCount: 10, era: 'legacy' },
  { toolCount: 1_000, era: 'legacy' },
  { toolCount: 10_000, era: 'legacy' },
  { toolCount: 10_000, era: 'modern' },
];
const SESSION_STEPS: Partial<Record<CurrentName, number[]>> = {
  direct: [1, 100, 1_000],
  'switchboard-stdio': [1, 100, 1_000],
  'switchboard-no-database': [1],
  'mcp-proxy': [1, 100],
  // It starts a process for every session.
  supergateway: [1, 32],
};
const START_VARIANTS: CurrentName[] = [
  'direct',
  'switchboard-stdio',
  'switchboard-no-database',
  'supergateway',
  'mcp-proxy',
  'mcp-hub',
];

export interface CallResult {
  name: string;
  payload: PayloadName;
  concurrency: number;
  samples: Samples;
}

export interface ListResult {
  name: string;
  toolCount: number;
  /** Of the client, and of the server behind. */
  era: Era;
  samples: Samples;
}

export interface SessionsResult {
  variant: VariantName;
  idleBytes: number;
  steps: { sessions: number; bytesPerSession: number }[];
}

export interface StartResult {
  variant: VariantName;
  milliseconds: number;
}

export function measureCalls(experiment: Experiment): Promise<CallResult[]> {
  return measureCallsOf(experiment, 'call', CALL_CONCURRENCY, partakers(experiment, callNames));
}

/** Calls between clients and servers of both eras, without those of an older build that are measured elsewhere. */
export function measureEras(experiment: Experiment): Promise<CallResult[]> {
  const measuredElsewhere: readonly CurrentName[] = callNames;
  const names = partakers(experiment, ['direct', 'direct-modern', ...eraNames]);
  const needed = names.filter((name) => !(isBefore(name) && measuredElsewhere.includes(currentOf(name))));
  return measureCallsOf(experiment, 'eras', ERA_CONCURRENCY, needed);
}

async function measureCallsOf(
  experiment: Experiment,
  kind: 'call' | 'eras',
  concurrencies: number[],
  variants: VariantName[],
): Promise<CallResult[]> {
  const scenarios = payloadNames.flatMap((payload) =>
    concurrencies.map((concurrency) => ({ name: `${kind}/${payload}/${concurrency}`, payload, concurrency })),
  );
  const wanted = scenarios.filter(({ name }) => experiment.isWanted(name));
  if (wanted.length === 0) return [];
  const started = await startAll(experiment, variants);
  const results: CallResult[] = [];
  for (const { name, payload, concurrency } of wanted) {
    experiment.progress(name);
    const contenders: Contender[] = [];
    for (const { running, client } of started) {
      await attempt(experiment, running.name, async () => {
        const exchange = await client.prepareCall(payload);
        contenders.push({ name: running.name, pid: running.pid, load: { client, exchange, concurrency } });
      });
    }
    results.push({
      name,
      payload,
      concurrency,
      samples: await measure(experiment, contenders, results.length === 0),
    });
  }
  await experiment.lab.stopAll();
  return results;
}

export async function measureLists(experiment: Experiment): Promise<ListResult[]> {
  const results: ListResult[] = [];
  for (const { toolCount, era } of LISTS) {
    const name = `list/${toolCount}${era === 'legacy' ? '' : `/${era}`}`;
    if (!experiment.isWanted(name)) continue;
    experiment.progress(name);
    const gateways = partakers(experiment, [listerOf(era)]);
    const started = await startAll(experiment, gateways, { toolCount });
    // The plain server sends the same bytes as Switchboard, which adds to what its server sent.
    const listJson = await started[0]?.client.list(toolCount);
    const plain = listJson === undefined ? { toolCount } : { listFile: experiment.lab.writeFile(listJson) };
    started.push(...(await startAll(experiment, [directOf(era)], plain)));
    const contenders: Contender[] = [];
    for (const { running, client } of started) {
      const exchange = await client.prepareList(toolCount);
      contenders.push({
        name: running.name,
        pid: running.pid,
        load: { client, exchange, concurrency: LIST_CONCURRENCY },
      });
    }
    results.push({ name, toolCount, era, samples: await measure(experiment, contenders, true) });
    await experiment.lab.stopAll();
  }
  return results;
}

/** The Switchboard variant with clients and servers of this era. */
export function listerOf(era: Era): 'switchboard-http' | 'switchboard-modern-http' {
  return era === 'legacy' ? 'switchboard-http' : 'switchboard-modern-http';
}

export async function measureSessions(experiment: Experiment): Promise<SessionsResult[]> {
  const results: SessionsResult[] = [];
  for (const variant of experiment.variants) {
    const steps = SESSION_STEPS[currentOf(variant)];
    if (steps === undefined || !experiment.isWanted(`sessions/${variant}`)) continue;
    experiment.progress(`sessions/${variant}`);
    await attempt(experiment, variant, async () => {
      results.push(await measureSessionsOf(experiment, variant, steps));
    });
    await experiment.lab.stopAll();
  }
  return results;
}

async function measureSessionsOf(
  { lab }: Experiment,
  variant: VariantName,
  steps: number[],
): Promise<SessionsResult> {
  const running = await lab.start(variant, { canCollectGarbage: true });
  const first = await Client.open(running.target);
  await first.list(3);
  await delay(1_000);
  const idleBytes = residentBytes(running.pid);

  // A first session allocates what all sessions share.
  (await first.openStream()).destroy();
  await first.close();
  const emptyBytes = await settledBytes(running);
  const streams: HttpConnection[] = [];
  const result: SessionsResult = { variant, idleBytes, steps: [] };
  for (const sessions of steps) {
    while (streams.length < sessions) {
      const client = await Client.open(running.target);
      streams.push(await client.openStream());
    }
    const bytes = await settledBytes(running);
    result.steps.push({ sessions, bytesPerSession: (bytes - emptyBytes) / sessions });
  }
  for (const stream of streams) stream.destroy();
  return result;
}

/** Memory after garbage collection, including child processes: some gateways start one per session. */
async function settledBytes({ pid }: Running): Promise<number> {
  for (let round = 0; round < 3; round++) {
    process.kill(pid, 'SIGUSR2');
    await delay(300);
  }
  return residentBytes(pid) + descendantBytes(pid);
}

export async function measureStarts(experiment: Experiment): Promise<StartResult[]> {
  const results: StartResult[] = [];
  for (const variant of partakers(experiment, START_VARIANTS)) {
    if (!experiment.isWanted(`start/${variant}`)) continue;
    experiment.progress(`start/${variant}`);
    await attempt(experiment, variant, async () => {
      const durations: number[] = [];
      for (let repeat = 0; repeat < experiment.startRepeats; repeat++) {
        const startedAt = performance.now();
        const running = await experiment.lab.start(variant);
        await firstList(running);
        durations.push(performance.now() - startedAt);
        await running.stop();
      }
      results.push({ variant, milliseconds: median(durations) ?? 0 });
    });
    await experiment.lab.stopAll();
  }
  return results;
}
