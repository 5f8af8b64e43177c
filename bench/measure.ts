/** Loads the variants in turn, in short cycles, and measures the CPU time of their processes per call. */
import { setTimeout as delay } from 'node:timers/promises';
import { applyLoad, type Load } from './load.ts';
import { cpuNanoseconds } from './processes.ts';
import type { VariantName } from './variants.ts';

const SETTLE_MS = 15;
/** A variant that takes this many times its share of a cycle runs only in every third cycle. */
const SLOW_FACTOR = 3;

export interface Contender {
  name: VariantName;
  pid: number;
  load: Load;
}

/** One variant in one cycle. */
interface Sample {
  cycle: number;
  nanosecondsPerCall: number;
  callsPerSecond: number;
}

export type Samples = Map<VariantName, Sample[]>;

export interface CycleSettings {
  cycles: number;
  /** Extra cycles at the start, which are not counted. */
  warmUpCycles: number;
  sliceMs: number;
  /** Called if a variant fails; the others continue unless it throws. */
  onFailure(name: VariantName, error: unknown): void;
}

export async function measureInTurn(contenders: Contender[], settings: CycleSettings): Promise<Samples> {
  const samples: Samples = new Map(contenders.map(({ name }) => [name, []]));
  const slow = new Set<VariantName>();
  let racing = contenders;
  for (let cycle = -settings.warmUpCycles; cycle < settings.cycles; cycle++) {
    for (const contender of inTurn(racing, cycle + settings.warmUpCycles)) {
      if (slow.has(contender.name) && cycle % 3 !== 0) continue;
      try {
        const { sample, elapsedMs } = await measureOnce(contender, cycle, settings.sliceMs);
        if (elapsedMs > settings.sliceMs * SLOW_FACTOR) slow.add(contender.name);
        if (cycle >= 0) samples.get(contender.name)?.push(sample);
      } catch (error) {
        settings.onFailure(contender.name, error);
        samples.delete(contender.name);
        racing = racing.filter((other) => other !== contender);
      }
    }
  }
  return samples;
}

async function measureOnce(contender: Contender, cycle: number, sliceMs: number) {
  let cpuBefore = 0;
  let cpuAfter = 0;
  const { calls, elapsedMs } = await applyLoad(
    contender.load,
    sliceMs,
    () => {
      cpuBefore = cpuNanoseconds(contender.pid);
    },
    async () => {
      // Work that a gateway does right after a call counts as part of the call.
      await delay(SETTLE_MS);
      cpuAfter = cpuNanoseconds(contender.pid);
    },
  );
  const sample: Sample = {
    cycle,
    nanosecondsPerCall: (cpuAfter - cpuBefore) / calls,
    callsPerSecond: (calls / elapsedMs) * 1000,
  };
  return { sample, elapsedMs };
}

/** Varies the order, so that no variant always runs after the same one. */
function inTurn<Item>(items: Item[], round: number): Item[] {
  const start = items.length === 0 ? 0 : round % items.length;
  const turned = [...items.slice(start), ...items.slice(0, start)];
  return round % 2 === 0 ? turned : turned.toReversed();
}

/** CPU time relative to another variant: the median over the cycles that both ran in. */
export interface Ratio {
  median: number;
  lowerQuartile: number;
  upperQuartile: number;
}

export function pairedRatio(samples: Samples, name: VariantName, base: VariantName): Ratio | undefined {
  const ofBase = new Map(samples.get(base)?.map((sample) => [sample.cycle, sample.nanosecondsPerCall]));
  const ratios = (samples.get(name) ?? []).flatMap(({ cycle, nanosecondsPerCall }) => {
    const baseNanoseconds = ofBase.get(cycle);
    return baseNanoseconds === undefined ? [] : [nanosecondsPerCall / baseNanoseconds];
  });
  const middle = median(ratios);
  if (middle === undefined) return undefined;
  const sorted = ratios.toSorted((left, right) => left - right);
  const quarter = Math.floor((sorted.length - 1) / 4);
  return {
    median: middle,
    lowerQuartile: sorted[quarter] ?? middle,
    upperQuartile: sorted.at(-1 - quarter) ?? middle,
  };
}

export function median(values: number[]): number | undefined {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle];
  if (upper === undefined || sorted.length % 2 === 1) return upper;
  return ((sorted[middle - 1] ?? upper) + upper) / 2;
}
