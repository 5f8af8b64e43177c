import type { HostingSettings } from '../../config.ts';
import { SwitchboardError } from '../../errors.ts';
import { Heartbeat } from '../../hosting/heartbeat.ts';
import type { Server } from '../../upstreams/server.ts';

interface HeartbeatsEvents {
  server(id: string): Server | undefined;
  ping(id: string, timeoutMs: number): Promise<void>;
  changed(id: string, isResponsive: boolean, why?: string): void;
}

/** One for each hosted server that runs. */
export class Heartbeats {
  private readonly settings: Pick<HostingSettings, 'heartbeatMs' | 'heartbeatTimeoutMs'>;
  private readonly events: HeartbeatsEvents;
  private readonly byId = new Map<string, Heartbeat>();

  constructor(
    settings: Pick<HostingSettings, 'heartbeatMs' | 'heartbeatTimeoutMs'>,
    events: HeartbeatsEvents,
  ) {
    this.settings = settings;
    this.events = events;
  }

  /** A new instance is innocent. */
  begin(id: string): void {
    this.byId.get(id)?.stop();
    const { heartbeatMs: everyMs, heartbeatTimeoutMs: timeoutMs } = this.settings;
    const heartbeat = new Heartbeat({
      everyMs,
      timeoutMs,
      isBusy: () => this.isBusy(id),
      ping: () => this.ping(id, timeoutMs),
      changed: (isResponsive) => this.events.changed(id, isResponsive, this.whyMute(id)),
    });
    this.byId.set(id, heartbeat);
  }

  /** Ends all but those. */
  keep(ids: ReadonlySet<string>): void {
    for (const [id, heartbeat] of this.byId) {
      if (ids.has(id)) continue;
      heartbeat.stop();
      this.byId.delete(id);
    }
  }

  /** It works on a call. Before the handshake it cannot: calls wait for it. */
  private isBusy(id: string): boolean {
    const replica = this.events.server(id)?.replicas[0];
    return replica === undefined || (replica.isLive && replica.load > 0);
  }

  private async ping(id: string, timeoutMs: number): Promise<void> {
    const replica = this.events.server(id)?.replicas[0];
    if (replica?.isLive !== false) return this.events.ping(id, timeoutMs);
    // A handshake that is under way has as long as any other answer.
    await replica.opening?.catch(() => {});
    if (!replica.isLive)
      throw new SwitchboardError('call_timeout', 'The server runs, but does not speak MCP.');
  }

  /** What came of the last handshake, where there was one. */
  private whyMute(id: string): string | undefined {
    const replica = this.events.server(id)?.replicas[0];
    if (replica === undefined || replica.isLive) return undefined;
    const { heartbeatMs, heartbeatTimeoutMs } = this.settings;
    const within = `It runs, but has not completed the MCP handshake within ${(heartbeatMs + heartbeatTimeoutMs) / 1_000} s`;
    const { reason } = replica.condition;
    return reason === undefined ? `${within}.` : `${within}: ${reason.message}`;
  }
}
