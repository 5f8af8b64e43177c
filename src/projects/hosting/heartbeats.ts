import type { HostingSettings } from '../../config.ts';
import { SwitchboardError } from '../../errors.ts';
import type { Server } from '../../upstreams/server.ts';

interface HeartbeatOptions {
  everyMs: number;
  timeoutMs: number;
  /** Whether a call is in progress: a busy server may not answer, so this beat is skipped. */
  isBusy(): boolean;
  /** Resolves with the response. An error other than a timeout says nothing about the server's health. */
  ping(): Promise<void>;
  /** Called once for each change. The server counts as responsive at first. */
  changed(isResponsive: boolean): void;
}

/** Pings a server regularly. It only reports, because a silent server may be busy with a long task. */
export class Heartbeat {
  private readonly options: HeartbeatOptions;
  private readonly timer: NodeJS.Timeout;
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
      // Even a late response shows that it responds.
      this.clearPending();
      this.report(true);
    } catch (error) {
      clearTimeout(timer);
      const isPending = this.pending.delete(timer);
      // The ping itself may have a shorter timeout.
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

interface HeartbeatsEvents {
  server(id: string): Server | undefined;
  ping(id: string, timeoutMs: number): Promise<void>;
  changed(id: string, isResponsive: boolean, why?: string): void;
}

export class Heartbeats {
  private readonly everyMs: number;
  private readonly timeoutMs: number;
  private readonly events: HeartbeatsEvents;
  private readonly byId = new Map<string, Heartbeat>();

  constructor({ heartbeatMs, heartbeatTimeoutMs }: HostingSettings, events: HeartbeatsEvents) {
    this.everyMs = heartbeatMs;
    this.timeoutMs = heartbeatTimeoutMs;
    this.events = events;
  }

  /** A new instance counts as responsive. */
  begin(id: string): void {
    const { everyMs, timeoutMs } = this;
    this.byId.get(id)?.stop();
    const heartbeat = new Heartbeat({
      everyMs,
      timeoutMs,
      isBusy: () => this.isBusy(id),
      ping: () => this.ping(id),
      changed: (isResponsive) => this.events.changed(id, isResponsive, this.handshakeProblem(id)),
    });
    this.byId.set(id, heartbeat);
  }

  retain(ids: ReadonlySet<string>): void {
    for (const [id, heartbeat] of this.byId) {
      if (ids.has(id)) continue;
      heartbeat.stop();
      this.byId.delete(id);
    }
  }

  /** Before the handshake it cannot be busy, because calls wait for that. */
  private isBusy(id: string): boolean {
    const replica = this.events.server(id)?.replicas[0];
    return replica === undefined || (replica.isLive && replica.load > 0);
  }

  private async ping(id: string): Promise<void> {
    const replica = this.events.server(id)?.replicas[0];
    if (replica?.isLive !== false) return this.events.ping(id, this.timeoutMs);
    // A handshake in progress has the same timeout as a ping.
    await replica.opening?.catch(() => {});
    if (!replica.isLive)
      throw new SwitchboardError('call_timeout', 'The server runs, but has not completed the MCP handshake.');
  }

  private handshakeProblem(id: string): string | undefined {
    const replica = this.events.server(id)?.replicas[0];
    if (replica === undefined || replica.isLive) return undefined;
    const seconds = (this.everyMs + this.timeoutMs) / 1_000;
    const problem = `It runs, but has not completed the MCP handshake within ${seconds} s`;
    const { reason } = replica.condition;
    return reason === undefined ? `${problem}.` : `${problem}: ${reason.message}`;
  }
}
