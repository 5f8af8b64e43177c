/*
 * What happens when a hosted server crashes. Two state machines take part: one for the process, one for the connection.
 *
 * Process (`HostedStatus` in server-state.ts): `Run` sees the exit and interrupts the loop below, which calls
 * `RestartScheduler.crashed`. That asks `afterExit` in restart-policy.ts and reports `restarting`, in a crash loop
 * `backing_off`, or `stopped` or `failed` if the policy allows no restart. When the delay is over, `start` gets a new
 * instance from the `Provisioner`, reports `starting` and emits `running`.
 *
 * Connection (`State` in ../upstreams/condition.ts): the same exit settles `Attachment.ended`, which closes the channel.
 * The connection is lost, goes to `backing_off` and retries by its own backoff. Each retry calls `Hosted.attach`, which
 * waits while the process is `starting` or `restarting` and fails at once otherwise. `running` makes the connection retry
 * immediately, and its handshake calls `Hosted.initialized`, which makes the process `ready`. The connection never restarts
 * the process: a process that does not answer is only reported as `unresponsive`.
 */

import { OutputTail } from '../channels/output-tail.ts';
import { settlesWithin, sleep, unlessAborted } from '../channels/timing.ts';
import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { Driver, Exit, InstanceEvents, InstanceSpec } from './driver.ts';
import { type DriverPool, Provisioner } from './provisioner.ts';
import { CrashHistory, type Timing } from './restart-policy.ts';
import { notStarted, RestartScheduler } from './restart-scheduler.ts';
import { Run } from './run.ts';
import {
  CHANGED,
  type DesiredState,
  type HostedEvents,
  type RunDetails,
  StatusReporter,
} from './server-state.ts';

export interface HostedOptions {
  timing: Timing;
  drivers: DriverPool;
  events: HostedEvents;
  redact(project: string, text: string): string;
}

/** Short, because a crashed server has to restart within 5 s. */
const CLEANUP_MS = 3_000;
/** How long a driver may exceed the grace period. */
export const STOP_MARGIN_MS = 10_000;

/**
 * Brings one hosted server to its desired state. One loop does everything, step by step, so there is never more than one
 * instance. A change of the desired state interrupts the current step.
 */
export class Reconciler {
  readonly reporter: StatusReporter;
  readonly scheduler: RestartScheduler;
  readonly provisioner: Provisioner;
  readonly history: CrashHistory;
  private readonly desired: DesiredState;
  private readonly timing: Timing;
  private readonly events: HostedEvents;
  private current: Run | undefined;
  /** The port that was last published on this machine. */
  private hostPort: number | undefined;
  private step = new AbortController();
  private loopEnd: Promise<void> | undefined;
  private hasEnded = false;

  constructor(desired: DesiredState, { timing, drivers, events, redact }: HostedOptions) {
    const { history } = desired.server;
    this.desired = desired;
    this.timing = timing;
    this.events = events;
    this.hostPort = history.hostPort;
    this.history = new CrashHistory(history, timing.restarts);
    this.provisioner = new Provisioner(drivers, timing.away);
    this.reporter = new StatusReporter(desired, events, redact, () => this.details());
    this.scheduler = new RestartScheduler(desired, this.reporter, this.history, timing.restarts);
  }

  get run(): Run | undefined {
    return this.current;
  }

  get isOver(): boolean {
    return this.hasEnded;
  }

  /** Runs once. */
  loop(): Promise<void> {
    this.loopEnd ??= this.reconcile();
    return this.loopEnd;
  }

  interrupt(): void {
    this.step.abort();
  }

  isUpToDate(run: Run): boolean {
    const { server, shouldRun, restart } = this.desired;
    const isWanted = run.revision === server.revision || this.scheduler.upgrade?.revision === server.revision;
    return shouldRun && isWanted && !restart.isPending;
  }

  reportRunning(run: Run): void {
    const { upgrade } = this.scheduler;
    this.reporter.report(run.isInitialized ? 'ready' : 'starting', upgrade?.reason, upgrade?.nextTry);
    const { restart } = this.desired;
    if (run.isInitialized && !restart.isPending) restart.settle(undefined);
  }

  /** Leaves the instance running for another Switchboard, if that can adopt it. */
  release(): void {
    const run = this.current;
    if (!run?.isAlive || !run.canBeReleased) return;
    this.current = undefined;
    run.release();
  }

  private async reconcile(): Promise<void> {
    this.scheduler.resume();
    while (await this.nextStep());
    this.reporter.wake();
  }

  /** Returns false when nothing is left to do. */
  private async nextStep(): Promise<boolean> {
    this.step = new AbortController();
    const { signal } = this.step;
    const run = this.current;
    // The exit of an outdated instance does not matter.
    if (run !== undefined && !this.isUpToDate(run)) await this.replace(run, signal);
    else if (run?.exit !== undefined) await this.handleExit(run, run.exit);
    else if (!this.desired.shouldRun) return this.rest(signal);
    else if (run !== undefined) await this.watch(run, signal);
    else if (!this.scheduler.isDue) await this.scheduler.untilDue(signal);
    else await this.start(signal);
    return true;
  }

  private async handleExit(run: Run, exit: Exit): Promise<void> {
    this.current = undefined;
    this.scheduler.clearUpgrade();
    if (exit.isLost) {
      this.provisioner.markLost(run.driver);
      this.waitForDriver(exit.reason ?? `Its provider (${run.driver.provider}) does not answer.`);
      return;
    }
    this.scheduler.crashed(run, exit);
    const isGone = await settlesWithin(run.instance.stop(CLEANUP_MS), CLEANUP_MS + 500).catch(() => false);
    if (!isGone) this.provisioner.markLeftover(run.driver);
  }

  private async start(signal: AbortSignal): Promise<void> {
    const { reporter, provisioner } = this;
    const driver = await provisioner.findDriver(this.desired.server, signal);
    if (driver === undefined) return;
    if (typeof driver === 'string') {
      this.waitForDriver(driver);
      return;
    }
    if (reporter.status !== 'starting') reporter.report('starting');
    await provisioner.untilReaped(driver, signal);
    if (signal.aborted) return;
    const { server, restart } = this.desired;
    const lastLines = new OutputTail();
    const events: InstanceEvents = { log: (line) => lastLines.add(reporter.log.add(line)) };
    let spec: InstanceSpec | undefined;
    try {
      spec = { ...server.spec(), formerHostPort: this.hostPort };
      const how = { mustBeNew: () => restart.isPending, graceMs: this.timing.restartGraceMs };
      const { instance, isAdopted } = await provisioner.adoptOrStart(driver, spec, events, how, signal);
      this.started(new Run(driver, instance, server.revision, spec.limits, lastLines), isAdopted, signal);
    } catch (error) {
      if (!signal.aborted) await this.startFailed(driver, error, spec === undefined, signal);
    }
  }

  private started(run: Run, isAdopted: boolean, signal: AbortSignal): void {
    this.current = run;
    const { url } = run.instance;
    if (url !== undefined) this.hostPort = Number(new URL(url).port);
    void run.ended.then(() => {
      if (this.current === run) this.interrupt();
    });
    // The desired state has changed: the next step handles the instance.
    if (signal.aborted) return;
    this.scheduler.started(isAdopted);
    this.desired.restart.started();
    this.announce(run);
  }

  private announce(run: Run): void {
    run.isAnnounced = true;
    this.reporter.log.add(`running (${run.driver.provider}, ${run.instance.id})`);
    this.reportRunning(run);
    this.events.running(this.desired.server.id);
  }

  private async startFailed(
    driver: Driver,
    error: unknown,
    isSpecMissing: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const why = await unlessAborted(driver.unavailable(), signal).catch(() => undefined);
    if (signal.aborted) return;
    if (why !== undefined) {
      this.waitForDriver(why);
      return;
    }
    const problem = this.reporter.redacted(asSwitchboardError(error));
    // Our own errors may be temporary.
    const isPermanent =
      error instanceof SwitchboardError && !problem.kind.retryable && problem.code !== 'internal';
    this.scheduler.startFailed(problem, isPermanent, isSpecMissing);
  }

  private waitForDriver(why: string): void {
    this.scheduler.driverUnavailable(why, this.provisioner.checkFailed());
  }

  private async watch(run: Run, signal: AbortSignal): Promise<void> {
    const { status } = this.reporter;
    // The desired state changed, and changed back.
    if (!run.isAnnounced) this.announce(run);
    else if (status !== 'unresponsive' && status !== (run.isInitialized ? 'ready' : 'starting'))
      this.reportRunning(run);
    if (this.provisioner.hasLeftover) await this.provisioner.removeLeftover(signal);
    else if (this.scheduler.upgrade !== undefined) await this.scheduler.untilUpgradeDue(signal);
    else await this.scheduler.untilStable(run, signal);
  }

  /** The old instance runs until the new one is prepared. */
  private async replace(run: Run, signal: AbortSignal): Promise<void> {
    const { desired, provisioner, reporter, scheduler } = this;
    const problem =
      desired.shouldRun && run.isAlive
        ? await provisioner.prepare(run.driver, desired, reporter, signal)
        : undefined;
    if (problem !== undefined && !signal.aborted) {
      const reason = scheduler.upgradeFailed(run, problem);
      this.reportRunning(run);
      desired.restart.settle(notStarted(reason));
    } else if (!signal.aborted || !run.isAlive || !desired.shouldRun) {
      await this.stop(run);
    }
  }

  private async stop(run: Run): Promise<void> {
    const { desired, reporter, timing } = this;
    run.isStopping = true;
    this.scheduler.clearUpgrade();
    // It stayed ready while the upgrade was pending.
    if (desired.shouldRun && reporter.status === 'ready') reporter.report('restarting', CHANGED);
    if (desired.goal === 'release' && run.canBeReleased) {
      run.release();
    } else {
      const graceMs = desired.goal === 'shutdown' ? timing.stopGraceMs : timing.restartGraceMs;
      try {
        const limitMs = graceMs + STOP_MARGIN_MS;
        if (!(await settlesWithin(run.instance.stop(graceMs), limitMs)))
          throw new SwitchboardError('internal', `It did not stop within ${limitMs / 1_000} s.`);
      } catch (error) {
        this.provisioner.markLeftover(run.driver);
        reporter.warn(`could not be stopped: ${asSwitchboardError(error).message}`);
      }
    }
    this.current = undefined;
  }

  /** Called while nothing runs, and nothing should. */
  private async rest(signal: AbortSignal): Promise<boolean> {
    const { desired, provisioner, reporter } = this;
    if (reporter.status !== 'stopped') reporter.report('stopped', desired.stopReason);
    if (desired.isFinal || (desired.goal === 'remove' && !provisioner.hasLeftover)) {
      this.hasEnded = true;
      return false;
    }
    if (provisioner.hasLeftover) await provisioner.removeLeftover(signal);
    else await sleep(signal);
    return true;
  }

  private details(): RunDetails {
    const { hostPort } = this;
    const instance = this.current?.instance;
    return {
      provider: (this.current?.driver ?? this.provisioner.driver)?.provider,
      instanceId: instance?.id,
      startedAt: instance?.startedAt,
      url: instance?.url,
      history: { ...this.history.persisted, ...(hostPort === undefined ? {} : { hostPort }) },
    };
  }
}
