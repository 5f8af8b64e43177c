import { type BackoffRule, backoffMs, sleep, unlessAborted } from '../channels/timing.ts';
import type { Provider } from '../config/choices.ts';
import { asSwitchboardError, type SwitchboardError } from '../errors.ts';
import type { Driver, Instance, InstanceEvents, InstanceSpec } from './driver.ts';
import type { DesiredState, Former, HostedServer, StatusReporter } from './server-state.ts';

export interface DriverPool {
  choose(requested: Provider | undefined, former?: Former): Promise<Driver>;
  /** Resolves when leftovers of earlier runs are removed or cannot be. Start nothing before. */
  untilReaped(driver: Driver): Promise<void>;
  reap(driver: Driver): Promise<void>;
}

/** Provides the instances of one server: picks its driver, adopts or starts, and removes leftovers. */
export class Provisioner {
  /** Whether an upgrade is being prepared: callers may still use the old instance. */
  isPreparing = false;
  private readonly pool: DriverPool;
  private readonly checks: BackoffRule;
  private chosen: Driver | undefined;
  /** The driver of an instance that was lost or could not be stopped. */
  private leftoverDriver: Driver | undefined;
  private failedChecks = 0;

  constructor(pool: DriverPool, checks: BackoffRule) {
    this.pool = pool;
    this.checks = checks;
  }

  get driver(): Driver | undefined {
    return this.chosen ?? this.leftoverDriver;
  }

  get hasLeftover(): boolean {
    return this.leftoverDriver !== undefined;
  }

  forgetDriver(): void {
    this.chosen = undefined;
  }

  /**
   * The driver, or why there is none; undefined if aborted. The choice stays while the driver is unavailable, because
   * another one would run the server twice, and without its volumes.
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

  /** Returns the delay before the next check. */
  checkFailed(): number {
    this.failedChecks++;
    return backoffMs(this.failedChecks, this.checks, 0);
  }

  /** Call if the driver became unavailable while the instance ran. */
  markLost(driver: Driver): void {
    this.leftoverDriver = driver;
    this.failedChecks = 0;
  }

  /** Call if the instance may still exist. */
  markLeftover(driver: Driver): void {
    if (driver.survivors !== undefined) this.leftoverDriver = driver;
  }

  /**
   * Tries to adopt even after an exit: an instance that survived in an unavailable engine would run beside the new one. If a new
   * instance is required, the survivor is stopped.
   */
  async adoptOrStart(
    driver: Driver,
    spec: InstanceSpec,
    events: InstanceEvents,
    { mustBeNew, graceMs }: { mustBeNew: () => boolean; graceMs: number },
    signal: AbortSignal,
  ): Promise<{ instance: Instance; isAdopted: boolean }> {
    try {
      const survivor = await driver.survivors?.adopt(spec, events);
      const isAdopted = survivor !== undefined && !mustBeNew();
      if (!isAdopted) {
        await survivor?.stop(graceMs);
        signal.throwIfAborted();
      }
      const instance = isAdopted ? survivor : await driver.start(spec, events, signal);
      if (this.leftoverDriver === driver) this.leftoverDriver = undefined;
      return { instance, isAdopted };
    } catch (error) {
      this.markLeftover(driver);
      throw error;
    }
  }

  /** Gets what an upgrade needs while the old instance still runs. Returns the problem that prevents it, if any. */
  async prepare(
    current: Driver,
    desired: DesiredState,
    reporter: StatusReporter,
    signal: AbortSignal,
  ): Promise<SwitchboardError | undefined> {
    const driver = await this.findDriver(desired.server, signal);
    const spec = driver === current && driver.prepare !== undefined ? desired.findSpec() : undefined;
    if (spec === undefined) return undefined;
    this.isPreparing = true;
    try {
      await unlessAborted(
        current.prepare!(spec, { log: (line) => void reporter.log.add(line) }, signal),
        signal,
      );
      return undefined;
    } catch (error) {
      return reporter.redacted(asSwitchboardError(error));
    } finally {
      this.isPreparing = false;
    }
  }

  async untilReaped(driver: Driver, signal: AbortSignal): Promise<void> {
    await unlessAborted(this.pool.untilReaped(driver), signal).catch(() => {});
  }

  /** Waits for the next check if the driver is unavailable. */
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
      // Treated as unavailable.
    }
    await sleep(signal, this.checkFailed());
  }
}
