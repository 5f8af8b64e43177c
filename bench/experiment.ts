/** Shared by all scenarios: which variants run, and how they are started and measured. */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from './client.ts';
import { expectModern } from './greeting.ts';
import type { Lab, Running, StartSettings } from './lab.ts';
import { type Contender, measureInTurn, type Samples } from './measure.ts';
import type { Unavailable } from './starting.ts';
import { type CurrentName, concernsModern, currentOf, isOwn, type VariantName } from './variants.ts';

const SLICE_MS = 250;
/** Cycles until V8 has optimized the code. */
const WARM_UP_OF_NEW_PROCESSES = 6;
const WARM_UP_OF_NEW_LOAD = 2;
const FIRST_LIST_TIMEOUT_MS = 20_000;

export interface Experiment {
  lab: Lab;
  variants: readonly VariantName[];
  cycles: number;
  startRepeats: number;
  isWanted(scenario: string): boolean;
  progress(text: string): void;
  /** Called if a variant fails; throws if that variant is required. */
  onFailure(name: VariantName, error: unknown): void;
  /** Called if something cannot be measured here. */
  onMissing(what: string, error: Unavailable): void;
}

interface Started {
  running: Running;
  client: Client;
}

/** The selected variants among these, including their older builds. */
export function partakers({ variants }: Experiment, names: readonly CurrentName[]): VariantName[] {
  return variants.filter((name) => names.includes(currentOf(name)));
}

export async function startAll(
  experiment: Experiment,
  variants: readonly VariantName[],
  settings: StartSettings = {},
): Promise<Started[]> {
  const started: Started[] = [];
  for (const name of variants) {
    experiment.progress(`starting ${name}`);
    await attempt(experiment, name, async () => {
      const running = await experiment.lab.start(name, settings);
      try {
        if (isOwn(name) && concernsModern(name)) await expectModern(running.target);
        if (settings.listFile === undefined) await firstList(running, settings.toolCount);
        started.push({ running, client: await Client.open(running.target) });
      } catch (error) {
        // Otherwise its work would disturb the other variants.
        await running.stop();
        throw error;
      }
    });
  }
  return started;
}

/** Retries until all tools are listed: some gateways listen before they have connected to their servers. */
export async function firstList(running: Running, toolCount = 3): Promise<void> {
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

export async function attempt(
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

export function measure(experiment: Experiment, contenders: Contender[], isFirst: boolean): Promise<Samples> {
  return measureInTurn(contenders, {
    cycles: experiment.cycles,
    warmUpCycles: isFirst ? WARM_UP_OF_NEW_PROCESSES : WARM_UP_OF_NEW_LOAD,
    sliceMs: SLICE_MS,
    onFailure: experiment.onFailure,
  });
}
