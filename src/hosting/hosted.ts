import type { Attachment } from '../channels/hosted.ts';
import { settlesWithin } from '../channels/timing.ts';
import { SwitchboardError } from '../errors.ts';
import type { Driver, ResourceUsage } from './driver.ts';
import type { HostedLog } from './log.ts';
import { type HostedOptions, Reconciler, STOP_MARGIN_MS } from './reconciler.ts';
import type { Timing } from './restart-policy.ts';
import { withLastLines } from './run.ts';
import {
  CHANGED,
  DesiredState,
  DISABLED,
  type HostedServer,
  type StatusReport,
  type StatusReporter,
} from './server-state.ts';

const NO_HEARTBEAT =
  'It runs, but does not answer the heartbeat. It may be busy with a long task, so it is not restarted.';
const NO_HANDSHAKE = 'It runs, but does not answer the MCP handshake.';

/** The public interface of one hosted server: change its desired state, attach to it, report its health. */
export class Hosted {
  private readonly timing: Timing;
  private readonly desired: DesiredState;
  private readonly reconciler: Reconciler;
  private readonly reporter: StatusReporter;

  constructor(server: HostedServer, options: HostedOptions) {
    this.timing = options.timing;
    this.desired = new DesiredState(server);
    this.reconciler = new Reconciler(this.desired, options);
    this.reporter = this.reconciler.reporter;
  }

  get report(): StatusReport {
    return this.reporter.latest;
  }

  get log(): HostedLog {
    return this.reporter.log;
  }

  get server(): HostedServer {
    return this.desired.server;
  }

  /** The driver that runs the server, or ran it last. */
  get lastDriver(): Driver | undefined {
    return this.reconciler.run?.driver ?? this.reconciler.provisioner.driver;
  }

  mayRunWith(driver: Driver): boolean {
    const { provider } = this.server;
    const isChosen = this.lastDriver === undefined || this.lastDriver === driver;
    return this.desired.shouldRun && isChosen && (provider === undefined || provider === driver.provider);
  }

  /** Resolves when it is removed or shut down. */
  begin(): Promise<void> {
    return this.reconciler.loop();
  }

  /** Returns false if it was already removed. */
  update(server: HostedServer): boolean {
    const { desired, reconciler } = this;
    if (reconciler.isOver) return false;
    const before = desired.server;
    const wasWanted = desired.shouldRun;
    desired.server = server;
    if (desired.isFinal) return true;
    desired.goal = 'run';
    if (server.provider !== before.provider) reconciler.provisioner.forgetDriver();
    if (!server.enabled) {
      if (desired.stopReason !== DISABLED) {
        this.log.add('disabled');
        this.halt(DISABLED);
      }
      return true;
    }
    if (!wasWanted) this.startNow(undefined);
    else if (server.revision !== before.revision) this.startNow(CHANGED);
    else if (reconciler.scheduler.isUnblockedSince(before)) this.startNow(undefined);
    return true;
  }

  remove(): void {
    if (this.desired.goal !== 'run') return;
    this.desired.goal = 'remove';
    this.halt('It was removed.');
  }

  /** Resolves when it no longer runs after `remove`. */
  async untilStopped(): Promise<void> {
    const { reconciler, reporter } = this;
    while (!reconciler.isOver && (reconciler.run !== undefined || reporter.status !== 'stopped'))
      await reporter.next();
  }

  /** Stops it for good. Never rejects. */
  async shutDown(): Promise<void> {
    if (this.desired.goal !== 'release') this.desired.goal = 'shutdown';
    this.halt('Switchboard was stopped.');
    await settlesWithin(this.begin(), this.timing.stopGraceMs + STOP_MARGIN_MS).catch(() => {});
  }

  /** Leaves it to another Switchboard, and emits no more events. Instances that cannot be adopted are stopped. */
  release(): void {
    if (this.desired.goal === 'shutdown') return;
    this.desired.goal = 'release';
    this.reporter.mute();
    this.reconciler.release();
    this.halt('Another Switchboard takes over.');
  }

  restart(): Promise<void> {
    const { restart, shouldRun, stopReason = DISABLED } = this.desired;
    if (restart.isPending) return restart.outcome;
    if (!shouldRun) {
      const advice = stopReason === DISABLED ? ` Start it: switchboard start ${this.server.name}` : '';
      return Promise.reject(this.unavailable(`${stopReason}${advice}`));
    }
    restart.request();
    this.reconciler.history.reset();
    this.log.add('restart requested');
    this.startNow('A restart was requested.');
    return restart.outcome;
  }

  /** Call after the MCP handshake with the running instance. */
  initialized(): void {
    const { run } = this.reconciler;
    if (!run?.isAlive || run.isInitialized) return;
    run.isInitialized = true;
    if (run.isAnnounced) this.reconciler.reportRunning(run);
  }

  /** `why` says what delays the handshake. */
  heartbeat(isResponsive: boolean, why = NO_HANDSHAKE): void {
    const { run } = this.reconciler;
    const { status } = this.report;
    if (!run?.isAlive || !run.isAnnounced) return;
    if (isResponsive && status === 'unresponsive' && run.isInitialized) {
      this.log.add('responds again');
      this.reconciler.reportRunning(run);
    } else if (!isResponsive && (status === 'ready' || status === 'starting')) {
      const reason = run.isInitialized ? NO_HEARTBEAT : withLastLines(why, run.lastLines.text);
      this.reporter.warn(`does not respond. ${reason}`);
      this.reporter.report('unresponsive', reason);
      this.desired.restart.settle(this.unavailable(reason));
    }
  }

  async usage(): Promise<ResourceUsage | undefined> {
    const { run } = this.reconciler;
    if (!run?.isAlive) return undefined;
    // It may exit meanwhile.
    return run.instance.usage().catch(() => undefined);
  }

  async attach(): Promise<Attachment> {
    const deadline = performance.now() + this.timing.attachMs;
    for (;;) {
      const found = this.attachment();
      if (found instanceof SwitchboardError) throw found;
      if (found !== undefined) return found;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) throw this.unavailable(`It is still being started (${this.reporter.status}).`);
      await this.reporter.next(leftMs);
    }
  }

  /** Undefined if the server should run soon. */
  private attachment(): Attachment | SwitchboardError | undefined {
    const { run, provisioner } = this.reconciler;
    const { status, reason } = this.report;
    const { shouldRun, stopReason = DISABLED } = this.desired;
    if (!shouldRun) return this.unavailable(stopReason);
    if (run?.isAlive && (this.reconciler.isUpToDate(run) || provisioner.isPreparing))
      return run.attachment ?? this.unavailable('It has neither stdio nor a port.');
    if (run !== undefined || status === 'starting' || status === 'restarting') return undefined;
    return this.unavailable(reason ?? `Its status is ${status}.`);
  }

  private startNow(why: string | undefined): void {
    this.reconciler.scheduler.reset();
    this.desired.stopReason = undefined;
    this.reporter.report(why === undefined ? 'starting' : 'restarting', why);
    this.reconciler.interrupt();
  }

  private halt(why: string): void {
    this.desired.stopReason = why;
    this.reconciler.scheduler.unblock();
    this.desired.restart.settle(this.unavailable(why));
    this.reconciler.interrupt();
    this.reporter.wake();
  }

  private unavailable(why: string): SwitchboardError {
    return this.reconciler.scheduler.unavailable(why);
  }
}
