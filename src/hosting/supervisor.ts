import type { Attachment } from '../channels/hosted.ts';
import { type Provider, providers } from '../config/choices.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { type Driver, type ResourceUsage, STOP_GRACE_MS } from './driver.ts';
import type { Drivers } from './drivers.ts';
import { Hosted } from './hosted.ts';
import type { HostedLog } from './log.ts';
import type { HostedOptions } from './reconciler.ts';
import { restartRules, type Timing } from './restart-policy.ts';
import type { HostedEvents, HostedServer, StatusReport } from './server-state.ts';

export interface SupervisorSettings {
  redact(project: string, text: string): string;
  timing?: Partial<Timing>;
}

const TIMING: Timing = {
  restarts: restartRules,
  stopGraceMs: STOP_GRACE_MS,
  restartGraceMs: 10_000,
  attachMs: 30_000,
  away: { firstMs: 1_000, maxMs: 10_000 },
};

interface Removed {
  server: Pick<HostedServer, 'name' | 'project'> & { provider?: HostedServer['provider'] };
  driver: Driver | undefined;
}

const MAX_REMOVED = 100;

export class Supervisor {
  private readonly drivers: Drivers;
  private readonly events: HostedEvents;
  private readonly options: HostedOptions;
  /** Includes those that are being removed. */
  private readonly hosted = new Map<string, Hosted>();
  private readonly shuttingDown = new Set<Hosted>();
  private readonly removed = new Map<string, Removed>();
  private readonly reaping = new Map<Driver, Promise<void>>();
  private hasApplied = false;
  private isOver = false;

  constructor(drivers: Drivers, { redact, timing }: SupervisorSettings, events: HostedEvents) {
    this.drivers = drivers;
    this.events = events;
    this.options = {
      timing: { ...TIMING, ...timing },
      drivers: {
        choose: (...args) => drivers.choose(...args),
        untilReaped: (driver) => this.untilReaped(driver),
        reap: (driver) => this.reap(driver),
      },
      events,
      redact,
    };
  }

  /**
   * Starts or adopts new servers in parallel, stops missing ones, and restarts those with a new revision. Returns at once; events
   * report the results.
   */
  apply(servers: readonly HostedServer[]): void {
    if (this.isOver) return;
    const ids = new Set(servers.map(({ id }) => id));
    for (const [id, hosted] of this.hosted) if (!ids.has(id)) hosted.remove();
    const added = servers.filter((server) => !this.hosted.get(server.id)?.update(server));
    // All must be known before the first start, which reaps the instances of unknown servers.
    for (const server of added) this.hosted.set(server.id, this.create(server));
    for (const { id } of added) void this.supervise(id, this.hosted.get(id)!);
    if (this.hasApplied) return;
    this.hasApplied = true;
    for (const provider of providers) void this.reapAtStart(provider);
  }

  status(id: string): StatusReport | undefined {
    return this.hosted.get(id)?.report;
  }

  async usage(id: string): Promise<ResourceUsage | undefined> {
    return this.hosted.get(id)?.usage();
  }

  log(id: string): HostedLog | undefined {
    return this.hosted.get(id)?.log;
  }

  /**
   * Waits while the server starts, or restarts within seconds. Otherwise rejects at once, with the time of the next start, if
   * any, as `retryAt` in the error's data.
   */
  async attach(id: string): Promise<Attachment> {
    return this.get(id).attach();
  }

  /** Also resets the counters. Resolves when the new instance is ready, rejects with the reason why it is not. */
  async restart(id: string): Promise<void> {
    return this.get(id).restart();
  }

  /** Call after the MCP handshake. */
  initialized(id: string): void {
    this.hosted.get(id)?.initialized();
  }

  /** `why` says what delays the handshake, if known. */
  heartbeat(id: string, isResponsive: boolean, why?: string): void {
    this.hosted.get(id)?.heartbeat(isResponsive, why);
  }

  async volumesUnavailable(id: string): Promise<string | undefined> {
    const { lastDriver, server } = this.get(id);
    try {
      const driver = lastDriver ?? (await this.drivers.choose(server.provider));
      return await driver.unavailable();
    } catch (error) {
      return asSwitchboardError(error).message;
    }
  }

  /** Stops the server first if it still runs. Remove its row before, or the next `apply` starts it again. */
  async removeVolumes(id: string): Promise<string[]> {
    const hosted = this.hosted.get(id);
    if (hosted !== undefined) {
      hosted.remove();
      await hosted.untilStopped();
    }
    const found = hosted === undefined ? this.removed.get(id) : removedOf(hosted);
    if (found === undefined) throw unknown(id);
    const driver = found.driver ?? (await this.drivers.choose(found.server.provider));
    return (await driver.volumes?.remove(found.server)) ?? [];
  }

  /** Undefined if they are unknown now. */
  async volumeNames(id: string): Promise<string[] | undefined> {
    const hosted = this.hosted.get(id);
    return hosted?.lastDriver?.volumes?.list(hosted.server).catch(() => undefined);
  }

  /** Tries all drivers, because the server no longer exists. */
  async removeOrphanedVolumes(server: Removed['server']): Promise<string[]> {
    const removed: string[] = [];
    for (const provider of providers) {
      const driver = await this.drivers.get(provider);
      if (driver.volumes === undefined || (await driver.unavailable()) !== undefined) continue;
      removed.push(...(await driver.volumes.remove(server)));
    }
    return removed;
  }

  /** Sends SIGTERM to all, and SIGKILL after the grace period. Never rejects, and nothing starts afterwards. */
  async stop(): Promise<void> {
    this.isOver = true;
    for (const hosted of this.hosted.values()) this.shuttingDown.add(hosted);
    await Promise.all(
      [...this.hosted.values()].map((hosted) =>
        hosted.shutDown().finally(() => this.shuttingDown.delete(hosted)),
      ),
    );
  }

  /** The servers that `stop` still waits for. */
  get ending(): string[] {
    return [...this.shuttingDown].map(({ server }) => server.name);
  }

  /** Leaves running what another Switchboard can adopt. Emits no more events. */
  release(): void {
    this.isOver = true;
    for (const hosted of this.hosted.values()) hosted.release();
  }

  private get(id: string): Hosted {
    const hosted = this.hosted.get(id);
    if (hosted === undefined) throw unknown(id);
    return hosted;
  }

  private create(server: HostedServer): Hosted {
    this.removed.delete(server.id);
    return new Hosted(server, this.options);
  }

  private async supervise(id: string, hosted: Hosted): Promise<void> {
    await hosted.begin();
    if (this.hosted.get(id) !== hosted || this.isOver) return;
    this.hosted.delete(id);
    this.removed.set(id, removedOf(hosted));
    const oldest = this.removed.keys().next().value!;
    if (this.removed.size > MAX_REMOVED) this.removed.delete(oldest);
  }

  /** Includes drivers that no server uses any more. An unavailable driver is reaped before its first start. */
  private async reapAtStart(provider: Provider): Promise<void> {
    try {
      const driver = await this.drivers.get(provider);
      if (driver.survivors === undefined || (await driver.unavailable()) !== undefined) return;
      await this.reapOnce(driver);
    } catch {
      // An unusable driver has nothing to remove, or has already been reported.
    }
  }

  /** Waits for all drivers, because those that share an engine could reap an instance that another one has just started. */
  private async untilReaped(driver: Driver): Promise<void> {
    await Promise.allSettled([this.reapOnce(driver), ...this.reaping.values()]);
  }

  private reapOnce(driver: Driver): Promise<void> {
    return this.reaping.get(driver) ?? this.reap(driver);
  }

  private reap(driver: Driver): Promise<void> {
    const before = this.reaping.get(driver) ?? Promise.resolve();
    const reaping = before.catch(() => {}).then(() => this.removeLeftovers(driver));
    this.reaping.set(driver, reaping);
    reaping.catch(() => {
      if (this.reaping.get(driver) === reaping) this.reaping.delete(driver);
    });
    return reaping;
  }

  private async removeLeftovers(driver: Driver): Promise<void> {
    if (driver.survivors === undefined || this.isOver) return;
    const kept = [...this.hosted].filter(([, hosted]) => hosted.mayRunWith(driver));
    const removed = await driver.survivors.reap(kept.map(([id]) => id));
    if (removed.length === 0) return;
    this.events.warned(`Removed instances that earlier runs left behind: ${removed.join(', ')}.`);
  }
}

function removedOf({ server, lastDriver }: Hosted): Removed {
  return { server, driver: lastDriver };
}

function unknown(id: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is no hosted server with the id "${id}".`);
}
