/** What is measured: calls, lists, memory of open sessions, and the way from start to the first list. */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from './client.ts';
import type { HttpConnection } from './http-connection.ts';
import { type Contender, measureInTurn, median, type Samples } from './measure.ts';
import { type PayloadName, payloadNames, toolListJson } from './payloads.ts';
import { descendantBytes, residentBytes } from './processes.ts';
import type { Unavailable } from './starting.ts';
import type { Lab, Running, StartSettings, VariantName } from './variants.ts';

const SLICE_MS = 250;
/** Cycles until the compiler has settled. */
const WARM_UP_OF_NEW_PROCESSES = 6;
const WARM_UP_OF_NEW_LOAD = 2;
const CALL_CONCURRENCY = [1, 16, 64];
const LIST_CONCURRENCY = 4;
const LIST_SIZES = [10, 1_000, 10_000];
const SESSION_STEPS: Partial<Record<VariantName, number[]>> = {
  direct: [1, 100, 1_000],
  'switchboard-stdio': [1, 100, 1_000],
  'switchboard-no-database': [1],
  'mcp-proxy': [1, 100],
  // It starts a process for every session.
  supergateway: [1, 32],
};
const START_VARIANTS: VariantName[] = [
  'direct',
  'switchboard-stdio',
  'switchboard-no-database',
  'supergateway',
  'mcp-proxy',
  'mcp-hub',
];
const FIRST_LIST_TIMEOUT_MS = 20_000;

export interface CallResult {
  name: string;
  payload: PayloadName;
  concurrency: number;
  samples: Samples;
}

export interface ListResult {
  name: string;
  toolCount: number;
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

export interface Experiment {
  lab: Lab;
  variants: readonly VariantName[];
  cycles: number;
  startRepeats: number;
  isWanted(scenario: string): boolean;
  progress(text: string): void;
  /** Told why a variant is missing; throws when the variant must not be missing. */
  onFailure(name: VariantName, error: unknown): void;
  /** Told what cannot be measured here, and why. */
  onMissing(what: string, error: Unavailable): void;
}

export async function measureCalls(experiment: Experiment): Promise<CallResult[]> {
  const scenarios = payloadNames.flatMap((payload) =>
    CALL_CONCURRENCY.map((concurrency) => ({
      name: `call/${payload}/${concurrency}`,
      payload,
      concurrency,
    })),
  );
  const wanted = scenarios.filter(({ name }) => experiment.isWanted(name));
  if (wanted.length === 0) return [];
  const started = await startAll(experiment, experiment.variants);
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
  for (const toolCount of LIST_SIZES) {
    const name = `list/${toolCount}`;
    if (!experiment.isWanted(name)) continue;
    experiment.progress(name);
    const gateways = experiment.variants.filter((variant) => variant === 'switchboard-http');
    const started = await startAll(experiment, gateways, { toolCount });
    // The plain server sends what Switchboard sends, which holds more than what the server behind it sent.
    const listJson = (await started[0]?.client.list(toolCount)) ?? toolListJson(toolCount);
    const listFile = experiment.lab.writeFile(listJson);
    started.push(...(await startAll(experiment, ['direct'], { listFile })));
    const contenders: Contender[] = [];
    for (const { running, client } of started) {
      const exchange = await client.prepareList(toolCount);
      contenders.push({
        name: running.name,
        pid: running.pid,
        load: { client, exchange, concurrency: LIST_CONCURRENCY },
      });
    }
    results.push({ name, toolCount, samples: await measure(experiment, contenders, true) });
    await experiment.lab.stopAll();
  }
  return results;
}

export async function measureSessions(experiment: Experiment): Promise<SessionsResult[]> {
  const results: SessionsResult[] = [];
  for (const variant of experiment.variants) {
    const steps = SESSION_STEPS[variant];
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

  // A first session of its own brings in what all sessions share.
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

/** Memory after garbage was collected, with that of the processes behind it: some gateways start one per session. */
async function settledBytes({ pid }: Running): Promise<number> {
  for (let round = 0; round < 3; round++) {
    process.kill(pid, 'SIGUSR2');
    await delay(300);
  }
  return residentBytes(pid) + descendantBytes(pid);
}

export async function measureStarts(experiment: Experiment): Promise<StartResult[]> {
  const results: StartResult[] = [];
  for (const variant of START_VARIANTS) {
    if (!experiment.variants.includes(variant) || !experiment.isWanted(`start/${variant}`)) continue;
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

/** Asks until all tools are listed: some gateways listen before they know their servers. */
async function firstList(running: Running, toolCount = 3): Promise<void> {
  const deadline = performance.now() + FIRST_LIST_TIMEOUT_MS;
  for (;;) {
    try {
      await (await Client.open(running.target)).list(toolCount);
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await delay(5);
    }
  }
}

interface Started {
  running: Running;
  client: Client;
}

async function startAll(
  experiment: Experiment,
  variants: readonly VariantName[],
  settings: StartSettings = {},
): Promise<Started[]> {
  const started: Started[] = [];
  for (const name of variants) {
    experiment.progress(`starting ${name}`);
    await attempt(experiment, name, async () => {
      const running = await experiment.lab.start(name, settings);
      if (settings.listFile === undefined) await firstList(running, settings.toolCount);
      started.push({ running, client: await Client.open(running.target) });
    });
  }
  return started;
}

async function attempt(
  experiment: Experiment,
  name: VariantName,
  action: () => Promise<void>,
): Promise<void> {
  try {
    await action();
  } catch (error) {
    experiment.onFailure(name, error);
  }
}

function measure(experiment: Experiment, contenders: Contender[], isFirst: boolean): Promise<Samples> {
  return measureInTurn(contenders, {
    cycles: experiment.cycles,
    warmUpCycles: isFirst ? WARM_UP_OF_NEW_PROCESSES : WARM_UP_OF_NEW_LOAD,
    sliceMs: SLICE_MS,
    onFailure: experiment.onFailure,
  });
}
