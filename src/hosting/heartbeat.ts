import { SwitchboardError } from '../errors.ts';

export interface HeartbeatOptions {
  everyMs: number;
  /** An answer that takes longer is none. */
  timeoutMs: number;
  /** Whether a call is under way: then the server may well be silent, and this beat is left out. */
  isBusy(): boolean;
  /** Settles with the server's answer. Where it fails otherwise than by time, that says nothing of the server. */
  ping(): Promise<void>;
  /** Told once for each change. It is taken to be responsive at first. */
  changed(isResponsive: boolean): void;
}

/** Asks a server for a sign of life from time to time. It only tells: a silent server may be at long work. */
export class Heartbeat {
  private readonly options: HeartbeatOptions;
  private readonly timer: NodeJS.Timeout;
  /** Of pings that may still be answered in time. */
  private readonly patience = new Set<NodeJS.Timeout>();
  private isResponsive = true;
  private isStopped = false;

  constructor(options: HeartbeatOptions) {
    this.options = options;
    this.timer = setInterval(() => void this.beat(), options.everyMs);
    this.timer.unref();
  }

  stop(): void {
    this.isStopped = true;
    clearInterval(this.timer);
    this.waitForNone();
  }

  private async beat(): Promise<void> {
    if (this.options.isBusy()) return;
    const timer = setTimeout(() => {
      this.patience.delete(timer);
      this.tell(false);
    }, this.options.timeoutMs);
    timer.unref();
    this.patience.add(timer);
    try {
      await this.options.ping();
      // Late or not: it lives, whatever became of the others.
      this.waitForNone();
      this.tell(true);
    } catch (error) {
      clearTimeout(timer);
      const isPending = this.patience.delete(timer);
      // Somebody else may have had less patience than we.
      const isSilence = error instanceof SwitchboardError && error.code === 'call_timeout';
      if (isPending && isSilence) this.tell(false);
    }
  }

  private waitForNone(): void {
    for (const timer of this.patience) clearTimeout(timer);
    this.patience.clear();
  }

  private tell(isResponsive: boolean): void {
    if (this.isStopped || isResponsive === this.isResponsive) return;
    this.isResponsive = isResponsive;
    this.options.changed(isResponsive);
  }
}
