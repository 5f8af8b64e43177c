/** What all scenarios need: who takes part, and how they are started and measured. */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from './client.ts';
import { expectModern } from './greeting.ts';
import type { Lab, Running, StartSettings } from './lab.ts';
import { type Contender, measureInTurn, type Samples } from './measure.ts';
import type { Unavailable } from './starting.ts';
import { type CurrentName, concernsModern, currentOf, isOwn, type VariantName } from './variants.ts';

const SLICE_MS = 250;
/** Cycles until the compiler has settled. */
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
  /** Told why a variant is missing; throws when the variant must not be missing. */
  onFailure(name: VariantName, error: unknown): void;
  /** Told what cannot be measured here, and why. */
  onMissing(what: string, error: Unavailable): void;
}

interface Started {
  running: Running;
  client: Client;
}

/** Those of these that take part, with what they are compared with of an older build. */
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
        // What it does while nobody measures it would be felt by the others.
        await running.stop();
        throw error;
      }
    });
  }
  return started;
}

/** Asks until all tools are listed: some gateways listen before they know their servers. */
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
