import type { Discovery } from './discovery.ts';
import type { SharedConnections } from './shared-connections.ts';

/** Stops a replica that nobody has used for long. */
export class Resting {
  private readonly connections: Pick<SharedConnections, 'isBusy' | 'rest'>;
  private readonly discovery: Pick<Discovery, 'done'>;
  private idleStopMs: number;
  private lastUsed = 0;
  private timer: NodeJS.Timeout | undefined;

  /** `idleStopMs`: after how long without a call; 0 is never. */
  constructor(idleStopMs: number, connections: Resting['connections'], discovery: Resting['discovery']) {
    this.idleStopMs = idleStopMs;
    this.connections = connections;
    this.discovery = discovery;
  }

  resize(idleStopMs: number): void {
    this.idleStopMs = idleStopMs;
    this.schedule();
  }

  /** A call is on its way, or came back. */
  used(): void {
    if (this.idleStopMs > 0) this.lastUsed = Date.now();
  }

  /** It was started. */
  begin(): void {
    this.lastUsed = Date.now();
    this.schedule();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private schedule(): void {
    clearTimeout(this.timer);
    if (this.idleStopMs === 0) return;
    const sinceUse = Date.now() - this.lastUsed;
    this.timer = setTimeout(() => this.restIfIdle(), Math.max(1, this.idleStopMs - sinceUse)).unref();
  }

  private restIfIdle(): void {
    const isIdle = Date.now() - this.lastUsed >= this.idleStopMs;
    if (this.connections.isBusy) this.lastUsed = Date.now();
    else if (isIdle && this.discovery.done === undefined) {
      this.connections.rest();
      return;
    }
    this.schedule();
  }
}
