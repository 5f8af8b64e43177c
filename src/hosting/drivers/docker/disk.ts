import { setTimeout as delay } from 'node:timers/promises';
import { inspectContainer } from './containers.ts';
import { type Engine, EngineRefusal } from './engine.ts';

/** The share of time that measuring may take: normally, and near a limit. */
const SHARE = 1 / 20;
const URGENT_SHARE = 1 / 2;
const POLL_MS = 100;
/** The engine may have to walk many files. */
const MEASURING_MS = 120_000;

export interface Disk {
  /** The id of a container with a writable root. */
  root: string | undefined;
  volumes: readonly string[];
}

interface Measurement {
  sizes: Promise<Map<string, number>>;
  beganAt: number;
  tookMs: number;
  /** Undefined while it is in progress. */
  endedAt: number | undefined;
}

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

  /** Ignores measurements that began earlier. */
  async measureNow(volumes: readonly string[]): Promise<number> {
    const requestedAt = performance.now();
    let { last } = this;
    while (last !== undefined && last.endedAt === undefined && last.beganAt < requestedAt) {
      await last.sizes.catch(() => {});
      last = this.last;
    }
    const current = last !== undefined && last.beganAt >= requestedAt ? last : this.begin();
    return sum(volumes, await current.sizes, 0);
  }

  private async measureRoot(id: string): Promise<number> {
    const options = { query: { size: '1' }, timeoutMs: MEASURING_MS };
    return (await inspectContainer(this.engine, id, options)).SizeRw ?? 0;
  }

  /** Shares one measurement, because the engine measures all volumes at once and refuses parallel requests. */
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

  /** Retries while the engine is busy with a measurement for another client. */
  private async askForVolumes(): Promise<Map<string, number>> {
    for (const until = performance.now() + MEASURING_MS; ; await delay(POLL_MS, undefined, { ref: false })) {
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
  // An unknown size is -1.
  return volumes.reduce((bytes, volume) => bytes + Math.max(0, sizes.get(volume) ?? 0), more);
}

const MAX_INTERVAL_MS = 5_000;
/** In bytes per millisecond: 256 MB/s. */
const FASTEST_WRITER = (256 * 1024 * 1024) / 1_000;

/** Measures disk usage, because few engines can limit it; more often near the limit. */
export class DiskWatch {
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
    // An unavailable engine is detected elsewhere.
    const bytes = await this.measure(isUrgent).catch(() => undefined);
    if (this.isStopped) return;
    if (bytes !== undefined) {
      this.bytes = bytes;
      measured(bytes);
    }
    const now = bytes ?? before;
    const willBeUrgent = now > before || now > this.limit / 2;
    const untilLimitMs = Math.max(POLL_MS, (this.limit - now) / FASTEST_WRITER);
    const tookMs = performance.now() - began;
    const pauseMs = Math.max(
      Math.min(untilLimitMs, MAX_INTERVAL_MS),
      tookMs / (willBeUrgent ? URGENT_SHARE : SHARE),
    );
    this.timer = setTimeout(() => void this.look(measured, willBeUrgent), pauseMs).unref();
  }
}
