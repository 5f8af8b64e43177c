import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { Drivers } from './choose.ts';
import type { Attachment, Condition, HostedServer } from './condition.ts';
import { type Driver, type Provider, providers, type Usage } from './driver.ts';
import { Hosted } from './hosted.ts';
import type { HostedLog } from './log.ts';
import { restartRules } from './restart-policy.ts';
import { STOP_GRACE_MS } from './settings.ts';
import type { Timing } from './surroundings.ts';

export type { Attachment, Condition, HostedServer, HostedStatus, Memory } from './condition.ts';

export interface SupervisorEvents {
  /** Its status, or something else of its condition, is another. */
  changed(id: string, condition: Condition): void;
  /** A crash, a crash loop, a server that does not respond, or cannot be run. */
  warned(message: string): void;
  /** An instance is there anew: connect now, and tell `speaks` when the handshake is done. */
  running(id: string): void;
}

export interface SupervisorSettings {
  redact(project: string, text: string): string;
  /** Other times than those below. */
  timing?: Partial<Timing>;
}

const TIMING: Timing = {
  restarts: restartRules,
  stopGraceMs: STOP_GRACE_MS,
  restartGraceMs: 10_000,
  attachMs: 30_000,
  away: { firstMs: 1_000, maxMs: 10_000 },
};

/** What has to be known of a server that left, to remove its volumes. */
interface Former {
  server: Pick<HostedServer, 'name' | 'project'> & { provider?: HostedServer['provider'] };
  driver: Driver | undefined;
}

/** So many servers that left are remembered. */
const MAX_FORMER = 100;

/** Makes the hosted servers run, and keeps them running. */
export class Supervisor {
  private readonly drivers: Drivers;
  private readonly settings: SupervisorSettings;
  private readonly events: SupervisorEvents;
  private readonly timing: Timing;
  /** Also those that are leaving. */
  private readonly hosted = new Map<string, Hosted>();
  private readonly notEnded = new Set<Hosted>();
  private readonly former = new Map<string, Former>();
  /** The last removal of leftovers of each driver. */
  private readonly reaping = new Map<Driver, Promise<void>>();
  private hasApplied = false;
  private isOver = false;

  constructor(drivers: Drivers, settings: SupervisorSettings, events: SupervisorEvents) {
    this.drivers = drivers;
    this.settings = settings;
    this.events = events;
    this.timing = { ...TIMING, ...settings.timing };
  }

  /**
   * Makes what runs be this: starts new ones in parallel, or adopts what survived of them; stops those that left; starts
   * those anew whose revision is another. Returns at once; what becomes of it is told by events.
   */
  apply(servers: readonly HostedServer[]): void {
    if (this.isOver) return;
    const ids = new Set(servers.map(({ id }) => id));
    for (const hosted of this.hosted.values()) if (!ids.has(hosted.id)) hosted.leave();
    const added = servers.filter((server) => !this.hosted.get(server.id)?.update(server));
    // All are known before the first is started: what is of none of them is removed then.
    for (const server of added) this.hosted.set(server.id, this.create(server));
    for (const { id } of added) void this.look(this.hosted.get(id)!);
    if (this.hasApplied) return;
    this.hasApplied = true;
    for (const provider of providers) void this.reapAtStart(provider);
  }

  condition(id: string): Condition | undefined {
    return this.hosted.get(id)?.condition;
  }

  async usage(id: string): Promise<Usage | undefined> {
    return this.hosted.get(id)?.usage();
  }

  /** The same one as long as the server is there. */
  log(id: string): HostedLog | undefined {
    return this.hosted.get(id)?.log;
  }

  /**
   * Settles with what to speak through, when it runs: waits while it starts or is restarted within seconds. Fails at once
   * where it does not run and will not soon; `retryAt` in the error's data says when it is tried next, if at all.
   */
  async attach(id: string): Promise<Attachment> {
    return this.get(id).attach();
  }

  /** Restarts it by hand, with counters reset. Settles when the new instance is ready, or fails with why it is not. */
  async restart(id: string): Promise<void> {
    return this.get(id).restart();
  }

  /** The MCP handshake with it is done. */
  speaks(id: string): void {
    this.hosted.get(id)?.speaks();
  }

  /** The heartbeat's word; `why` is what keeps a server from completing the handshake, where that is known. */
  responds(id: string, isResponsive: boolean, why?: string): void {
    this.hosted.get(id)?.responds(isResponsive, why);
  }

  /** Why its volumes could not be removed now. */
  async volumesUnavailable(id: string): Promise<string | undefined> {
    const { lastDriver, wanted } = this.get(id);
    try {
      const driver = lastDriver ?? (await this.drivers.choose(wanted.provider));
      return await driver.unavailable();
    } catch (error) {
      return asSwitchboardError(error).message;
    }
  }

  /**
   * Removes the volumes of one that left. One that is still there is stopped for it, and is started again by the next
   * `apply` that names it: remove its row first.
   */
  async removeVolumes(id: string): Promise<string[]> {
    const hosted = this.hosted.get(id);
    if (hosted !== undefined) {
      hosted.leave();
      await hosted.untilLeft();
    }
    const found = hosted === undefined ? this.former.get(id) : formerOf(hosted);
    if (found === undefined) throw unknown(id);
    const driver = found.driver ?? (await this.drivers.choose(found.server.provider));
    return (await driver.volumes?.remove(found.server)) ?? [];
  }

  /** What its provider calls its volumes; undefined where that cannot be told now. */
  async volumeNames(id: string): Promise<string[] | undefined> {
    const hosted = this.hosted.get(id);
    return hosted?.lastDriver?.volumes?.list(hosted.wanted).catch(() => undefined);
  }

  /** Removes what a server of that name has kept that is not there any more, wherever it ran. */
  async removeKept(server: Former['server']): Promise<string[]> {
    const removed: string[] = [];
    for (const provider of providers) {
      const driver = await this.drivers.get(provider);
      if (driver.volumes === undefined || (await driver.unavailable()) !== undefined) continue;
      removed.push(...(await driver.volumes.remove(server)));
    }
    return removed;
  }

  /** SIGTERM to all, 30 s, SIGKILL. Settles in any case, and nothing starts after it. */
  async stop(): Promise<void> {
    this.isOver = true;
    for (const hosted of this.hosted.values()) this.notEnded.add(hosted);
    await Promise.all(
      [...this.hosted.values()].map((hosted) => hosted.end().finally(() => this.notEnded.delete(hosted))),
    );
  }

  /** The names of those that `stop` still waits for. */
  get ending(): string[] {
    return [...this.notEnded].map(({ wanted }) => wanted.name);
  }

  /** Lets go of all, and leaves running what can be adopted. Nothing is told after it. */
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
    this.former.delete(server.id);
    return new Hosted(server, this.timing, {
      choose: (...asked) => this.drivers.choose(...asked),
      untilReaped: (driver) => this.untilReaped(driver),
      reap: (driver) => this.reap(driver),
      redact: (project, text) => this.settings.redact(project, text),
      changed: (id, condition) => this.events.changed(id, condition),
      warned: (message) => this.events.warned(message),
      running: (id) => this.events.running(id),
    });
  }

  private async look(hosted: Hosted): Promise<void> {
    await hosted.begin();
    if (this.hosted.get(hosted.id) !== hosted || this.isOver) return;
    this.hosted.delete(hosted.id);
    this.former.set(hosted.id, formerOf(hosted));
    const oldest = this.former.keys().next().value!;
    if (this.former.size > MAX_FORMER) this.former.delete(oldest);
  }

  /** Of drivers that none of the servers may use any more, too. Where it is away now, that is done when it is used. */
  private async reapAtStart(provider: Provider): Promise<void> {
    try {
      const driver = await this.drivers.get(provider);
      if (driver.survivors === undefined || (await driver.unavailable()) !== undefined) return;
      await this.reapOnce(driver);
    } catch {
      // A driver that cannot be used has nothing to remove, or has been warned of.
    }
  }

  /** Drivers may share an engine: none is to remove what another has just started for a server that came meanwhile. */
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
    const kept = [...this.hosted.values()].filter((hosted) => hosted.mayRunWith(driver));
    const removed = await driver.survivors.reap(kept.map(({ id }) => id));
    if (removed.length === 0) return;
    this.events.warned(`Removed what was left behind of hosted servers: ${removed.join(', ')}.`);
  }
}

function formerOf({ wanted, lastDriver }: Hosted): Former {
  return { server: wanted, driver: lastDriver };
}

function unknown(id: string): SwitchboardError {
  return new SwitchboardError('not_found', `There is no hosted server of the id "${id}".`);
}
