import { setTimeout as delay } from 'node:timers/promises';
import { inspectContainer } from './containers.ts';
import { type Engine, EngineRefusal } from './engine.ts';

/** Of the time, what measuring may take at most; and where a limit may be reached soon. */
const SHARE = 1 / 20;
const URGENT_SHARE = 1 / 2;
const OFTEN_MS = 100;
/** A measurement may walk through many files. */
const MEASURING_MS = 120_000;

/** What of a container can grow on the disk. */
export interface Disk {
  /** Of the container with this id, where it may write to it. */
  root: string | undefined;
  volumes: readonly string[];
}

interface Measurement {
  sizes: Promise<Map<string, number>>;
  beganAt: number;
  tookMs: number;
  /** Undefined while it is under way. */
  endedAt: number | undefined;
}

/** Measures what containers and volumes take on the disk of an engine. */
export class DiskMeter {
  private readonly engine: Engine;
  private last: Measurement | undefined;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  async measure({ root, volumes }: Disk, isUrgent = false): Promise<number> {
    const [ofRoot, sizes] = await Promise.all([
      root === undefined ? 0 : this.measureRoot(root),
      volumes.length === 0 ? new Map<string, number>() : this.measureVolumes(isUrgent),
    ]);
    return sum(volumes, sizes, ofRoot);
  }

  /** What volumes hold now: nothing that was measured before is good enough. */
  async measureNow(volumes: readonly string[]): Promise<number> {
    const askedAt = performance.now();
    let { last } = this;
    while (last !== undefined && last.endedAt === undefined && last.beganAt < askedAt) {
      await last.sizes.catch(() => {});
      last = this.last;
    }
    const current = last !== undefined && last.beganAt >= askedAt ? last : this.begin();
    return sum(volumes, await current.sizes, 0);
  }

  private async measureRoot(id: string): Promise<number> {
    const ask = { query: { size: '1' }, timeoutMs: MEASURING_MS };
    return (await inspectContainer(this.engine, id, ask)).SizeRw ?? 0;
  }

  /** The engine measures all volumes at once, and refuses to do so twice at the same time; so all share what it finds. */
  private measureVolumes(isUrgent: boolean): Promise<Map<string, number>> {
    const { last } = this;
    const began = performance.now();
    const isFresh = ({ endedAt, tookMs }: Measurement) =>
      endedAt === undefined || began - endedAt < tookMs / (isUrgent ? URGENT_SHARE : SHARE);
    return (last !== undefined && isFresh(last) ? last : this.begin()).sizes;
  }

  private begin(): Measurement {
    const beganAt = performance.now();
    const measurement: Measurement = { sizes: this.askForVolumes(), beganAt, tookMs: 0, endedAt: undefined };
    const ended = () => {
      measurement.endedAt = performance.now();
      measurement.tookMs = measurement.endedAt - beganAt;
    };
    measurement.sizes.then(ended, ended);
    this.last = measurement;
    return measurement;
  }

  /** Somebody else may have the engine measure just now. */
  private async askForVolumes(): Promise<Map<string, number>> {
    for (const until = performance.now() + MEASURING_MS; ; await delay(OFTEN_MS, undefined, { ref: false })) {
      try {
        const { Volumes } = await this.engine.get<{
          Volumes: { Name: string; UsageData?: { Size: number } }[] | null;
        }>('/system/df', { query: { type: 'volume' }, timeoutMs: MEASURING_MS });
        return new Map((Volumes ?? []).map(({ Name, UsageData }) => [Name, UsageData?.Size ?? 0]));
      } catch (error) {
        const isBusy = error instanceof EngineRefusal && /already running/i.test(error.message);
        if (!isBusy || performance.now() > until) throw error;
      }
    }
  }
}

function sum(volumes: readonly string[], sizes: ReadonlyMap<string, number>, more: number): number {
  // One that nobody knows the size of counts as less than nothing.
  return volumes.reduce((bytes, volume) => bytes + Math.max(0, sizes.get(volume) ?? 0), more);
}

const SELDOM_MS = 5_000;
/** A server is taken to write this many bytes in a millisecond at most: 256 MB in a second. */
const FASTEST_WRITER = (256 * 1024 * 1024) / 1_000;

/**
 * Looks how much is used, as the engine seldom can keep a container from using more: the more often, the sooner the limit
 * can be reached.
 */
export class DiskWatch {
  /** What was measured last. */
  bytes: number | undefined;
  private readonly limit: number;
  private readonly measure: (isUrgent: boolean) => Promise<number>;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(
    limit: number,
    measure: (isUrgent: boolean) => Promise<number>,
    measured: (bytes: number) => void,
  ) {
    this.limit = limit;
    this.measure = measure;
    void this.look(measured, false);
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private async look(measured: (bytes: number) => void, isUrgent: boolean): Promise<void> {
    const began = performance.now();
    const before = this.bytes ?? 0;
    // Where it fails, the next time is soon enough: an engine that is away is noticed elsewhere.
    const bytes = await this.measure(isUrgent).catch(() => undefined);
    if (this.isStopped) return;
    if (bytes !== undefined) {
      this.bytes = bytes;
      measured(bytes);
    }
    const now = bytes ?? before;
    const willBeUrgent = now > before || now > this.limit / 2;
    const isReachedMs = Math.max(OFTEN_MS, (this.limit - now) / FASTEST_WRITER);
    const tookMs = performance.now() - began;
    const pauseMs = Math.max(
      Math.min(isReachedMs, SELDOM_MS),
      tookMs / (willBeUrgent ? URGENT_SHARE : SHARE),
    );
    this.timer = setTimeout(() => void this.look(measured, willBeUrgent), pauseMs).unref();
  }
}
