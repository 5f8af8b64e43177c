import { asSwitchboardError } from '../errors.ts';
import type { Former, HostedServer } from './condition.ts';
import type { Driver, Instance, InstanceEvents, InstanceSpec, Provider } from './driver.ts';
import { sleep, unlessAborted } from './timeouts.ts';

/** What looks after the drivers that all servers share. */
export interface DriverPool {
  choose(asked: Provider | undefined, former?: Former): Promise<Driver>;
  /** Settles when what others left behind is removed, or cannot be. Nothing may be started before. */
  untilReaped(driver: Driver): Promise<void>;
  /** Removes what is left of servers that are to run no more. */
  reap(driver: Driver): Promise<void>;
}

/** How often we look whether what runs it is there again: twice as long each time. */
export interface AwayRule {
  firstMs: number;
  maxMs: number;
}

/** Where the instances of one server come from: the driver that was chosen for it, whether that is there or away. */
export class Provisioner {
  private readonly pool: DriverPool;
  private readonly rule: AwayRule;
  private chosen: Driver | undefined;
  /** Where something of it may still be, because it was lost or could not be stopped. */
  private leftoverDriver: Driver | undefined;
  /** How often in a row it was found to be away. */
  private failedChecks = 0;

  constructor(pool: DriverPool, rule: AwayRule) {
    this.pool = pool;
    this.rule = rule;
  }

  get driver(): Driver | undefined {
    return this.chosen ?? this.leftoverDriver;
  }

  /** While it runs: with another driver than the one that was chosen since. */
  get hasLeftover(): boolean {
    return this.leftoverDriver !== undefined;
  }

  /** Another one may be asked for now. */
  forgetDriver(): void {
    this.chosen = undefined;
  }

  /**
   * The driver, or why there is none now; undefined where that was aborted. Once chosen it stays, also while it is away:
   * elsewhere it would run a second time, and without its volumes.
   */
  async findDriver(
    { provider, former }: Pick<HostedServer, 'provider' | 'former'>,
    signal: AbortSignal,
  ): Promise<Driver | string | undefined> {
    let why: string | undefined;
    try {
      if (this.chosen !== undefined) {
        if (this.failedChecks > 0) why = await unlessAborted(this.chosen.unavailable(), signal);
      } else {
        const found = await unlessAborted(this.pool.choose(provider, former), signal);
        if (!signal.aborted) this.chosen = found;
      }
    } catch (error) {
      why = asSwitchboardError(error).message;
    }
    if (signal.aborted) return undefined;
    if (why === undefined) this.failedChecks = 0;
    return why ?? this.chosen;
  }

  /** Until the next look at one that is away. */
  nextCheckMs(): number {
    return Math.min(this.rule.firstMs * 2 ** Math.min(this.failedChecks++, 20), this.rule.maxMs);
  }

  /** It went away with an instance. */
  markLost(driver: Driver): void {
    this.leftoverDriver = driver;
    this.failedChecks = 0;
  }

  /** An instance may still be there. */
  markLeftover(driver: Driver): void {
    if (driver.survivors !== undefined) this.leftoverDriver = driver;
  }

  /**
   * Adopts first, also where an instance has just ended: what an engine that was away has kept would run beside the new
   * one. Where it has to be a new one, a survivor is stopped.
   */
  async adoptOrStart(
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
      this.markLeftover(driver);
      throw error;
    }
  }

  async untilReaped(driver: Driver, signal: AbortSignal): Promise<void> {
    await unlessAborted(this.pool.untilReaped(driver), signal);
  }

  /** Removes what may be left of it, or waits a while where it is away. */
  async removeLeftover(signal: AbortSignal): Promise<void> {
    const driver = this.leftoverDriver;
    if (driver === undefined) return;
    try {
      if ((await unlessAborted(driver.unavailable(), signal)) === undefined && !signal.aborted) {
        await this.pool.reap(driver);
        this.leftoverDriver = undefined;
        return;
      }
    } catch {
      // As good as away.
    }
    await sleep(signal, this.nextCheckMs());
  }

  private take(driver: Driver, instance: Instance): Instance {
    if (this.leftoverDriver === driver) this.leftoverDriver = undefined;
    return instance;
  }
}
