import { existsSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf, describeOpenFiles, openFilesOf, residentMegabytes } from './processes.ts';

/** The resources of the Switchboard process at one moment. */
export interface Holdings {
  openFiles: number;
  children: number;
  zombies: number;
  resources: Record<string, number>;
  listeners: Record<string, number>;
  /** Memory in use after a garbage collection. */
  liveMegabytes: number;
  /** The longest turn of the event loop, in CPU time, since the last sample. */
  longestTurnMs: number;
  warnings: string[];
}

type Probed = Pick<Holdings, 'resources' | 'listeners' | 'liveMegabytes' | 'longestTurnMs' | 'warnings'>;

const PROBE_MS = 30_000;
const LOOK_EVERY_MS = 500;
/** Servers keep idle connections for 5 s. */
const REST_LOOKS = 14;
/** The variation of garbage collection under a constant load. */
export const MAX_GROWTH = 1.1;
/** stdin, stdout and stderr. */
const FILES_PER_CHILD = 3;
/** Resources per child process. */
const perChild: Record<string, number> = { ProcessWrap: 1, PipeWrap: 3 };
/** Short operations that hold nothing when they are done. */
const passing = new Set(['FSReqCallback', 'FSReqPromise', 'GetAddrInfoReqWrap', 'Immediate', 'TickObject']);

/** Samples the Switchboard process, from outside and through the probe inside. */
export class Monitor {
  readonly rss: number[] = [];
  /** Memory after garbage collection, because the engine's timing of collections varies. */
  readonly live: number[] = [];
  private readonly pid: number;
  private readonly probePath: string;

  constructor(pid: number, probePath: string) {
    this.pid = pid;
    this.probePath = probePath;
  }

  async sample(): Promise<void> {
    const { liveMegabytes } = await this.holdings();
    this.live.push(liveMegabytes);
    this.rss.push(residentMegabytes(this.pid));
  }

  async holdings(): Promise<Holdings> {
    rmSync(this.probePath, { force: true });
    process.kill(this.pid, 'SIGUSR2');
    const deadline = Date.now() + PROBE_MS;
    while (!existsSync(this.probePath)) {
      if (Date.now() > deadline) throw new Error(`Switchboard does nothing: no probe within ${PROBE_MS} ms`);
      await delay(10);
    }
    const probed = JSON.parse(readFileSync(this.probePath, 'utf8')) as Probed;
    const children = childrenOf(this.pid);
    return {
      openFiles: openFilesOf(this.pid),
      children: children.length,
      zombies: children.filter(({ isZombie }) => isZombie).length,
      ...probed,
    };
  }

  /** The resources at rest, once idle connections are closed. */
  async atRest(): Promise<Holdings> {
    let least = await this.holdings();
    for (let unchanged = 0; unchanged < REST_LOOKS; unchanged++) {
      await delay(LOOK_EVERY_MS);
      const holdings = await this.holdings();
      if (leaks(holdings, least).length > 0) unchanged = 0;
      least = holdings;
    }
    return least;
  }

  /** The resources once they are back at the earlier level, or when the time is up. */
  async settled(before: Holdings, withinMs: number): Promise<Holdings> {
    const deadline = Date.now() + withinMs;
    for (;;) {
      const holdings = await this.holdings();
      if (leaks(before, holdings).length === 0 || Date.now() > deadline) return holdings;
      await delay(LOOK_EVERY_MS);
    }
  }

  describeOpenFiles(): string {
    return describeOpenFiles(this.pid);
  }
}

/** Describes what is held now but was not before. */
export function leaks(before: Holdings, after: Holdings): string[] {
  const moreChildren = after.children - before.children;
  const found: string[] = [];
  const compare = (what: string, was: number, is: number) => {
    if (is > was) found.push(`${what}: ${was} before the load, ${is} after it`);
  };
  compare('open files', before.openFiles + FILES_PER_CHILD * moreChildren, after.openFiles);
  compare('zombies', 0, after.zombies);
  for (const [kind, count] of Object.entries(after.resources)) {
    if (passing.has(kind)) continue;
    const was = before.resources[kind] ?? 0;
    compare(`resources ${kind}`, was + (perChild[kind] ?? 0) * moreChildren, count);
  }
  for (const [where, count] of Object.entries(after.listeners)) {
    compare(`listeners of ${where}`, before.listeners[where] ?? 0, count);
  }
  return found;
}

export type Quarters = readonly [number, number, number, number];

export function quarters(samples: readonly number[]): Quarters {
  const size = samples.length / 4;
  const of = (quarter: number) =>
    average(samples.slice(Math.round(quarter * size), Math.round((quarter + 1) * size)));
  return [of(0), of(1), of(2), of(3)];
}

/** Ignores the first quarter, in which the process warms up and time-limited caches fill. */
export function isFlat([, second, ...later]: Quarters): boolean {
  return later.every((megabytes) => megabytes <= second * MAX_GROWTH);
}

export function megabytes(values: readonly number[]): string {
  return values.map((value) => value.toFixed(1)).join(' → ');
}

function average(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / Math.max(1, numbers.length);
}
