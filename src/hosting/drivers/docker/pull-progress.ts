import { formatBytes } from '../../driver.ts';

export interface PullStep {
  /** The layer. */
  id?: string;
  status?: string;
  progressDetail?: { current?: number; total?: number };
  error?: string;
}

/** The engine reports every few kilobytes, which would flood the log. */
const EVERY_MS = 2_000;

/** Logs the progress of a pull from time to time. */
export class PullProgress {
  private readonly say: (line: string) => void;
  private readonly layers = new Map<string, { current: number; total: number; isDone: boolean }>();
  private readonly clock: () => number;
  private nextAt = 0;

  constructor(say: (line: string) => void, clock: () => number = Date.now) {
    this.say = say;
    this.clock = clock;
  }

  add({ id, status = '', progressDetail }: PullStep): void {
    if (id === undefined || !/^(Pulling fs layer|Waiting|Downloading|Download|Pull|Already)/.test(status))
      return;
    // This id is the tag of the image.
    if (status.startsWith('Pulling from')) return;
    const layer = this.layers.get(id) ?? { current: 0, total: 0, isDone: false };
    this.layers.set(id, layer);
    layer.isDone ||= /^(Download|Pull) complete|^Already/.test(status);
    layer.current = layer.isDone ? layer.total : (progressDetail?.current ?? layer.current);
    layer.total = Math.max(layer.total, progressDetail?.total ?? 0);
    const now = this.clock();
    if (now < this.nextAt) return;
    this.nextAt = now + EVERY_MS;
    this.say(this.text);
  }

  private get text(): string {
    const layers = [...this.layers.values()];
    const done = layers.filter((layer) => layer.isDone).length;
    const current = layers.reduce((sum, layer) => sum + layer.current, 0);
    return `${done} of ${layers.length} layers, ${formatBytes(current)} so far`;
  }
}
