import { sleep } from '../channels/timing.ts';
import { SwitchboardError } from '../errors.ts';
import type { Exit } from './driver.ts';
import { type CrashHistory, type RestartRules, RetryBackoff } from './restart-policy.ts';
import { type Run, withLastLines, withoutPeriod } from './run.ts';
import type { DesiredState, HostedServer, StatusReporter } from './server-state.ts';

/** The old instance runs until the new one can be prepared. */
interface PendingUpgrade {
  revision: string;
  reason: string;
  nextTry: Date;
  /** By the monotonic clock. */
  dueAt: number;
}

/** Decides when a server starts next, and reports why it does not run. */
export class RestartScheduler {
  /** Set while the running instance could not be replaced. */
  upgrade: Readonly<PendingUpgrade> | undefined;
  private readonly desired: DesiredState;
  private readonly reporter: StatusReporter;
  private readonly history: CrashHistory;
  private readonly rules: RestartRules;
  /** A failed start is not a crash, because nothing ran. */
  private readonly failedStarts: RetryBackoff;
  private readonly failedUpgrades: RetryBackoff;
  /** By the monotonic clock. */
  private dueAt = 0;
  /** No start until something changes. */
  private blocked: { isSpecMissing: boolean } | undefined;
  private isRestart = false;

  constructor(desired: DesiredState, reporter: StatusReporter, history: CrashHistory, rules: RestartRules) {
    this.desired = desired;
    this.reporter = reporter;
    this.history = history;
    this.rules = rules;
    this.failedStarts = new RetryBackoff(rules);
    this.failedUpgrades = new RetryBackoff(rules);
  }

  get isDue(): boolean {
    return this.blocked === undefined && this.dueAt <= performance.now();
  }

  async untilDue(signal: AbortSignal): Promise<void> {
    await sleep(signal, this.blocked === undefined ? this.dueAt - performance.now() : undefined);
  }

  /** Continues a crash loop's delay that began before Switchboard restarted. */
  resume(): void {
    const leftMs = this.history.remainingDelayMs;
    if (leftMs === 0 || !this.desired.shouldRun) {
      this.reporter.report(this.reporter.status);
      return;
    }
    this.isRestart = true;
    this.reporter.report('backing_off', 'It is in a crash loop.', this.setDue(leftMs));
  }

  /** Makes the next start immediate. */
  reset(): void {
    this.history.forgive();
    this.failedStarts.reset();
    this.blocked = undefined;
    this.isRestart = false;
    this.dueAt = 0;
    this.clearUpgrade();
  }

  unblock(): void {
    this.blocked = undefined;
  }

  isUnblockedSince({ restartPolicy }: HostedServer): boolean {
    if (this.blocked === undefined) return false;
    if (restartPolicy !== this.desired.server.restartPolicy) return true;
    return this.blocked.isSpecMissing && this.desired.findSpec() !== undefined;
  }

  started(isAdopted: boolean): void {
    if (this.isRestart && !isAdopted) this.history.restarted();
    this.isRestart = false;
    this.failedStarts.reset();
    this.clearUpgrade();
  }

  /** Keeps the running instance, and retries the upgrade later if the server has changed. Returns why it is not replaced. */
  upgradeFailed(run: Run, { message }: SwitchboardError): string {
    const { revision } = this.desired.server;
    const isChange = run.revision !== revision;
    const what = isChange
      ? 'The new image is not available, so the old instance keeps running'
      : 'The image is not available, so the current instance keeps running';
    const reason = `${what}. ${message}`;
    if (isChange) {
      const delayMs = this.failedUpgrades.failedSlowly();
      const nextTry = new Date(Date.now() + delayMs);
      this.upgrade = { revision, reason, nextTry, dueAt: performance.now() + delayMs };
    }
    if (this.reporter.latest.reason !== reason) this.reporter.warn(`was not restarted. ${reason}`);
    return reason;
  }

  /** Waits until the pending upgrade is due, which ends it. */
  async untilUpgradeDue(signal: AbortSignal): Promise<void> {
    await sleep(signal, Math.max(0, (this.upgrade?.dueAt ?? 0) - performance.now()));
    if (!signal.aborted) this.upgrade = undefined;
  }

  clearUpgrade(): void {
    this.upgrade = undefined;
    this.failedUpgrades.reset();
  }

  /** Waits until the run has lasted long enough to end a crash loop. */
  async untilStable(run: Run, signal: AbortSignal): Promise<void> {
    if (!this.history.isLoop) return sleep(signal);
    const { windowMs } = this.rules;
    await sleep(signal, Math.max(0, windowMs - run.uptimeMs));
    if (signal.aborted) return;
    this.history.forgive();
    this.reporter.log.add(`has run for ${windowMs / 1_000} s: the crash loop is over`);
    this.reporter.report(this.reporter.status, this.reporter.latest.reason);
  }

  crashed(run: Run, exit: Exit): void {
    const lastLines = run.lastLines.text;
    const { how, reason } = run.describeCrash(exit);
    const quote = lastLines === '' ? '' : ` Last output: ${lastLines}`;
    const decision = this.history.exited(exit, reason, run.uptimeMs, this.desired.server.restartPolicy);
    if (decision.action === 'restart') {
      const { delayMs, isLoop } = decision;
      const loop = isLoop ? 'It is in a crash loop. ' : '';
      this.isRestart = true;
      const nextTry = this.setDue(delayMs);
      this.reporter.warn(`${how}. ${loop}It restarts ${delayText(delayMs)}.`, quote);
      this.reporter.report(isLoop ? 'backing_off' : 'restarting', `${loop}It ${how}.${quote}`, nextTry);
    } else {
      this.stay(decision.action === 'stay' ? decision.status : 'stopped', how, quote);
    }
    this.desired.restart.settle(this.unavailable(withLastLines(`It ${how}`, lastLines)));
  }

  /** `isSpecMissing`: a secret is missing, so it is not known what to start. */
  startFailed(problem: SwitchboardError, isPermanent: boolean, isSpecMissing: boolean): void {
    if (isPermanent) {
      this.blocked = { isSpecMissing };
      this.isRestart = false;
      this.reporter.warn(`cannot be started: ${problem.message}`);
      this.reporter.report('failed', problem.message);
    } else {
      this.retryStart(`could not be started: ${withoutPeriod(problem.message)}`);
    }
    this.desired.restart.settle(notStarted(problem.message));
  }

  driverUnavailable(why: string, retryMs: number): void {
    const { status, reason } = this.reporter.latest;
    this.setDue(retryMs);
    if (status !== 'waiting') this.reporter.warn(`is waiting: ${why}`);
    if (status !== 'waiting' || reason !== why) this.reporter.report('waiting', why);
    this.desired.restart.settle(this.unavailable(why));
  }

  /** The error for callers that need the server, with the time of the next start. */
  unavailable(why: string): SwitchboardError {
    const leftMs = this.dueAt - performance.now();
    const isScheduled = this.desired.shouldRun && leftMs > 0;
    return this.reporter.unavailable(why, isScheduled ? new Date(Date.now() + leftMs) : undefined);
  }

  private retryStart(how: string): void {
    if (this.desired.server.restartPolicy === 'never') {
      this.stay('failed', how, '');
      return;
    }
    const delayMs = this.failedStarts.failed();
    const nextTry = this.setDue(delayMs);
    this.reporter.warn(`${how}. The next attempt is ${delayText(delayMs)}.`);
    this.reporter.report(
      this.failedStarts.isBackingOff ? 'backing_off' : 'restarting',
      `It ${how}.`,
      nextTry,
    );
  }

  /** Called if the restart policy allows no start. */
  private stay(status: 'stopped' | 'failed', how: string, quote: string): void {
    this.blocked = { isSpecMissing: false };
    const isFailure = status === 'failed';
    const text = `${how}. It is not restarted (restart policy ${this.desired.server.restartPolicy}).`;
    if (isFailure) this.reporter.warn(text, quote);
    else this.reporter.log.add(text);
    this.reporter.report(status, `It ${how}.${isFailure ? quote : ''}`);
  }

  private setDue(delayMs: number): Date {
    this.dueAt = performance.now() + delayMs;
    return new Date(Date.now() + delayMs);
  }
}

/** Always this code, because the caller who requested the restart made no mistake. */
export function notStarted(why: string): SwitchboardError {
  return new SwitchboardError('server_start_failed', why);
}

function delayText(ms: number): string {
  return ms === 0 ? 'now' : `in ${ms / 1_000} s`;
}
