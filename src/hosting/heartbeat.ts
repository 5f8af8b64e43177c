import { SwitchboardError } from '../errors.ts';

export interface HeartbeatOptions {
  everyMs: number;
  timeoutMs: number;
  /** Whether a call is in progress: a busy server may not answer, so this beat is skipped. */
  isBusy(): boolean;
  /** Resolves with the server's answer. An error other than a timeout says nothing about the server. */
  ping(): Promise<void>;
  /** Called once for each change. The server counts as responsive at first. */
  changed(isResponsive: boolean): void;
}

/** Pings a server regularly. It only reports, because a silent server may be busy with a long task. */
export class Heartbeat {
  private readonly options: HeartbeatOptions;
  private readonly timer: NodeJS.Timeout;
  /** The timeouts of pending pings. */
  private readonly pending = new Set<NodeJS.Timeout>();
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
    this.clearPending();
  }

  private async beat(): Promise<void> {
    if (this.options.isBusy()) return;
    const timer = setTimeout(() => {
      this.pending.delete(timer);
      this.report(false);
    }, this.options.timeoutMs);
    timer.unref();
    this.pending.add(timer);
    try {
      await this.options.ping();
      // Even a late answer shows that it responds.
      this.clearPending();
      this.report(true);
    } catch (error) {
      clearTimeout(timer);
      const isPending = this.pending.delete(timer);
      // The ping may have a shorter timeout of its own.
      const isTimeout = error instanceof SwitchboardError && error.code === 'call_timeout';
      if (isPending && isTimeout) this.report(false);
    }
  }

  private clearPending(): void {
    for (const timer of this.pending) clearTimeout(timer);
    this.pending.clear();
  }

  private report(isResponsive: boolean): void {
    if (this.isStopped || isResponsive === this.isResponsive) return;
    this.isResponsive = isResponsive;
    this.options.changed(isResponsive);
  }
}
