import type { Connections } from './connections.ts';
import type { Discovery } from './discovery.ts';

/** Stops a replica that was not used for a while. */
export class IdleStop {
  private readonly connections: Pick<Connections, 'isBusy' | 'rest'>;
  private readonly discovery: Pick<Discovery, 'done'>;
  /** 0: never. */
  private idleStopMs: number;
  private timer: NodeJS.Timeout | undefined;
  lastUsed = 0;

  constructor(idleStopMs: number, connections: IdleStop['connections'], discovery: IdleStop['discovery']) {
    this.idleStopMs = idleStopMs;
    this.connections = connections;
    this.discovery = discovery;
  }

  resize(idleStopMs: number): void {
    this.idleStopMs = idleStopMs;
    this.schedule();
  }

  /** The replica was started. */
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
