import { asSwitchboardError } from '../errors.ts';
import { asleep, unlessAborted } from './clock.ts';
import type { Former, HostedServer } from './condition.ts';
import type { Driver, Instance, InstanceEvents, InstanceSpec, Provider } from './driver.ts';

/** What looks after the drivers that all servers share. */
export interface DriverPool {
  choose(asked: Provider | undefined, former?: Former): Promise<Driver>;
  /** Settles when what others left behind is removed, or cannot be. Nothing may be started before. */
  cleared(driver: Driver): Promise<void>;
  /** Removes what is left of servers that are to run no more. */
  clear(driver: Driver): Promise<void>;
}

/** How often we look whether what runs it is there again: twice as long each time. */
export interface AwayRule {
  firstMs: number;
  maxMs: number;
}

/** Where the instances of one server come from: the driver that was chosen for it, whether that is there or away. */
export class Supply {
  private readonly pool: DriverPool;
  private readonly rule: AwayRule;
  private chosen: Driver | undefined;
  /** Where something of it may still be, because it was lost or could not be stopped. */
  private leftAt: Driver | undefined;
  /** How often in a row it was found to be away. */
  private timesAway = 0;

  constructor(pool: DriverPool, rule: AwayRule) {
    this.pool = pool;
    this.rule = rule;
  }

  get driver(): Driver | undefined {
    return this.chosen ?? this.leftAt;
  }

  /** While it runs: with another driver than the one that was chosen since. */
  get hasLeftover(): boolean {
    return this.leftAt !== undefined;
  }

  /** Another one may be asked for now. */
  reconsider(): void {
    this.chosen = undefined;
  }

  /**
   * The driver, or why there is none now; undefined where that was aborted. Once chosen it stays, also while it is away:
   * elsewhere it would run a second time, and without its volumes.
   */
  async find(
    { provider, former }: Pick<HostedServer, 'provider' | 'former'>,
    signal: AbortSignal,
  ): Promise<Driver | string | undefined> {
    let why: string | undefined;
    try {
      if (this.chosen !== undefined) {
        if (this.timesAway > 0) why = await unlessAborted(this.chosen.unavailable(), signal);
      } else {
        const found = await unlessAborted(this.pool.choose(provider, former), signal);
        if (!signal.aborted) this.chosen = found;
      }
    } catch (error) {
      why = asSwitchboardError(error).message;
    }
    if (signal.aborted) return undefined;
    if (why === undefined) this.timesAway = 0;
    return why ?? this.chosen;
  }

  /** Until the next look at one that is away. */
  awayDelayMs(): number {
    return Math.min(this.rule.firstMs * 2 ** Math.min(this.timesAway++, 20), this.rule.maxMs);
  }

  /** It went away with an instance. */
  lost(driver: Driver): void {
    this.leftAt = driver;
    this.timesAway = 0;
  }

  /** An instance may still be there. */
  leave(driver: Driver): void {
    if (driver.survivors !== undefined) this.leftAt = driver;
  }

  /**
   * Adopts first, also where an instance has just ended: what an engine that was away has kept would run beside the new
   * one. Where it has to be a new one, a survivor is stopped.
   */
  async bring(
    driver: Driver,
    spec: InstanceSpec,
    events: InstanceEvents,
    { isNew, graceMs }: { isNew: () => boolean; graceMs: number },
    signal: AbortSignal,
  ): Promise<{ instance: Instance; isAdopted: boolean }> {
    try {
      const survivor = await driver.survivors?.adopt(spec, events);
      if (survivor !== undefined && !isNew())
        return { instance: this.take(driver, survivor), isAdopted: true };
      await survivor?.stop(graceMs);
      signal.throwIfAborted();
      return { instance: this.take(driver, await driver.start(spec, events, signal)), isAdopted: false };
    } catch (error) {
      this.leave(driver);
      throw error;
    }
  }

  async cleared(driver: Driver, signal: AbortSignal): Promise<void> {
    await unlessAborted(this.pool.cleared(driver), signal);
  }

  /** Removes what may be left of it, or waits a while where it is away. */
  async clearLeftover(signal: AbortSignal): Promise<void> {
    const driver = this.leftAt;
    if (driver === undefined) return;
    try {
      if ((await unlessAborted(driver.unavailable(), signal)) === undefined && !signal.aborted) {
        await this.pool.clear(driver);
        this.leftAt = undefined;
        return;
      }
    } catch {
      // As good as away.
    }
    await asleep(signal, this.awayDelayMs());
  }

  private take(driver: Driver, instance: Instance): Instance {
    if (this.leftAt === driver) this.leftAt = undefined;
    return instance;
  }
}
