import { inspectContainer } from './containers.ts';
import type { Engine } from './engine.ts';

/** Of the time, what measuring may take at most. */
const SHARE = 1 / 20;
/** A measurement may walk through many files. */
const MEASURING_MS = 120_000;

/** What of a container can grow on the disk. */
export interface Disk {
  /** Of the container with this id, where it may write to it. */
  root: string | undefined;
  volumes: readonly string[];
}

/** Measures what containers and volumes take on the disk of an engine. */
export class DiskMeter {
  private readonly engine: Engine;
  private volumeSizes: Promise<Map<string, number>> | undefined;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  async measure({ root, volumes }: Disk): Promise<number> {
    const [ofRoot, sizes] = await Promise.all([
      root === undefined ? 0 : this.measureRoot(root),
      volumes.length === 0 ? new Map<string, number>() : this.measureVolumes(),
    ]);
    // One that nobody knows the size of counts as less than nothing.
    return volumes.reduce((sum, volume) => sum + Math.max(0, sizes.get(volume) ?? 0), ofRoot);
  }

  private async measureRoot(id: string): Promise<number> {
    const ask = { query: { size: '1' }, timeoutMs: MEASURING_MS };
    return (await inspectContainer(this.engine, id, ask)).SizeRw ?? 0;
  }

  /** The engine measures all volumes at once, and refuses to do so twice at the same time; so all share what it finds. */
  private measureVolumes(): Promise<Map<string, number>> {
    const began = performance.now();
    this.volumeSizes ??= this.askForVolumes().finally(() => {
      const forget = () => {
        this.volumeSizes = undefined;
      };
      setTimeout(forget, (performance.now() - began) / SHARE).unref();
    });
    return this.volumeSizes;
  }

  private async askForVolumes(): Promise<Map<string, number>> {
    const { Volumes } = await this.engine.get<{
      Volumes: { Name: string; UsageData?: { Size: number } }[] | null;
    }>('/system/df', { query: { type: 'volume' }, timeoutMs: MEASURING_MS });
    return new Map((Volumes ?? []).map(({ Name, UsageData }) => [Name, UsageData?.Size ?? 0]));
  }
}

const EVERY_MS = 5_000;

/** Looks now and then how much is used, as the engine seldom can keep a container from using more. */
export class DiskWatch {
  /** What was measured last. */
  bytes: number | undefined;
  private readonly measure: () => Promise<number>;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(measure: () => Promise<number>, measured: (bytes: number) => void) {
    this.measure = measure;
    void this.look(measured);
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private async look(measured: (bytes: number) => void): Promise<void> {
    const began = performance.now();
    // Where it fails, the next time is soon enough: an engine that is away is noticed elsewhere.
    const bytes = await this.measure().catch(() => undefined);
    if (this.isStopped) return;
    if (bytes !== undefined) {
      this.bytes = bytes;
      measured(bytes);
    }
    const pause = Math.max(EVERY_MS, (performance.now() - began) / SHARE);
    this.timer = setTimeout(() => void this.look(measured), pause).unref();
  }
}
