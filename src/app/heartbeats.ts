import type { HostingSettings } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { Heartbeat } from '../hosting/heartbeat.ts';
import type { Server } from '../upstreams/server.ts';

interface HeartbeatsEvents {
  server(id: string): Server | undefined;
  ping(id: string, timeoutMs: number): Promise<void>;
  changed(id: string, isResponsive: boolean): void;
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
      changed: (isResponsive) => this.events.changed(id, isResponsive),
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

  /** It works on a call, or the handshake is under way, which has a time of its own. */
  private isBusy(id: string): boolean {
    const replica = this.events.server(id)?.replicas[0];
    if (replica === undefined || replica.condition.state === 'starting') return true;
    return replica.load > 0;
  }

  private async ping(id: string, timeoutMs: number): Promise<void> {
    const replica = this.events.server(id)?.replicas[0];
    // It runs, and could not be brought to shake hands.
    if (replica?.isLive === false)
      throw new SwitchboardError('call_timeout', 'The server runs, but does not speak MCP with us.');
    await this.events.ping(id, timeoutMs);
  }
}
