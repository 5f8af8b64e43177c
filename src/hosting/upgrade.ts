import { asSwitchboardError, type SwitchboardError } from '../errors.ts';
import type { DesiredState } from './desired-state.ts';
import type { Provisioner } from './provisioner.ts';
import { type RestartRules, RetryBackoff } from './restart-policy.ts';
import type { Run } from './run.ts';
import type { StatusReporter } from './status-reporter.ts';
import { sleep, unlessAborted } from './timeouts.ts';

interface Pending {
  revision: string;
  reason: string;
  nextTry: Date;
  /** The same by the monotonic clock. */
  dueAt: number;
}

/** Prepares a new instance while the old one runs. If that fails, the old one keeps running and the upgrade is pending. */
export class Upgrade {
  /** Callers may still use the old instance. */
  isPreparing = false;
  private readonly desired: DesiredState;
  private readonly reporter: StatusReporter;
  private readonly provisioner: Provisioner;
  private readonly retries: RetryBackoff;
  private current: Pending | undefined;

  constructor(
    desired: DesiredState,
    reporter: StatusReporter,
    provisioner: Provisioner,
    rules: RestartRules,
  ) {
    this.desired = desired;
    this.reporter = reporter;
    this.provisioner = provisioner;
    this.retries = new RetryBackoff(rules);
  }

  get pending(): Readonly<Pending> | undefined {
    return this.current;
  }

  reset(): void {
    this.current = undefined;
    this.retries.reset();
  }

  /** Returns the problem that prevents the upgrade, if any. */
  async prepare(run: Run, signal: AbortSignal): Promise<SwitchboardError | undefined> {
    const driver = await this.provisioner.findDriver(this.desired.server, signal);
    if (driver !== run.driver || driver.prepare === undefined) return undefined;
    const spec = this.desired.findSpec();
    if (spec === undefined) return undefined;
    this.isPreparing = true;
    try {
      const events = { log: (line: string) => void this.reporter.log.add(line) };
      await unlessAborted(driver.prepare(spec, events, signal), signal);
      return undefined;
    } catch (error) {
      return this.reporter.redacted(asSwitchboardError(error));
    } finally {
      this.isPreparing = false;
    }
  }

  /** Keeps the old instance, and returns why. If the server has changed, the upgrade is retried later. */
  postpone(run: Run, { message }: SwitchboardError): string {
    const { revision } = this.desired.server;
    const isChange = run.revision !== revision;
    const what = isChange
      ? 'The new image cannot be had: the server goes on with the old one'
      : 'The image cannot be had: the running instance stays';
    const reason = `${what}. ${message}`;
    if (isChange) {
      const delayMs = this.retries.failedSlowly();
      const nextTry = new Date(Date.now() + delayMs);
      this.current = { revision, reason, nextTry, dueAt: performance.now() + delayMs };
    }
    if (this.reporter.condition.reason !== reason) this.reporter.warn(`is not restarted. ${reason}`);
    return reason;
  }

  /** Until the pending upgrade is due. */
  async untilDue(signal: AbortSignal): Promise<void> {
    await sleep(signal, Math.max(0, (this.current?.dueAt ?? 0) - performance.now()));
    if (!signal.aborted) this.current = undefined;
  }
}
