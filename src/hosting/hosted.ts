import type { Attachment } from '../channels/hosted.ts';
import { SwitchboardError } from '../errors.ts';
import type { Condition, HostedServer } from './condition.ts';
import { withLastWords } from './crash-description.ts';
import { CHANGED, DesiredState, DISABLED } from './desired-state.ts';
import type { Driver, Usage } from './driver.ts';
import type { HostedLog } from './log.ts';
import { type HostedOptions, Reconciler, STOP_MARGIN_MS } from './reconciler.ts';
import type { Timing } from './settings.ts';
import type { StatusReporter } from './status-reporter.ts';
import { withTimeout } from './timeouts.ts';

const NO_HEARTBEAT =
  'It runs, but does not answer the heartbeat. It may be busy with a long task, so it is not restarted.';
const NO_HANDSHAKE = 'It runs, but does not answer the MCP handshake.';

/** One hosted server as others see it: they change what it should be, attach to it, and report its health. */
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

  get condition(): Condition {
    return this.reporter.condition;
  }

  get log(): HostedLog {
    return this.reporter.log;
  }

  get server(): HostedServer {
    return this.desired.server;
  }

  /** The driver that runs it, or ran it last. */
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
        this.log.add('stopped by hand');
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
      await reporter.changes.next();
  }

  /** Stops it for good. Never rejects. */
  async shutDown(): Promise<void> {
    if (this.desired.goal !== 'release') this.desired.goal = 'shutdown';
    this.halt('Switchboard was stopped.');
    await withTimeout(this.begin(), this.timing.stopGraceMs + STOP_MARGIN_MS).catch(() => {});
  }

  /** Leaves it to another Switchboard, and emits no more events. What that cannot adopt is stopped. */
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
    this.log.add('restarted by hand');
    this.startNow('It is restarted by hand.');
    return restart.outcome;
  }

  /** The handshake with the running instance is done. */
  speaks(): void {
    const { run } = this.reconciler;
    if (!run?.isAlive || run.isSpeaking) return;
    run.isSpeaking = true;
    if (run.isAnnounced) this.reconciler.reportRunning(run);
  }

  /** The result of the heartbeat. `why` says what delays the handshake. */
  responds(isResponsive: boolean, why = NO_HANDSHAKE): void {
    const { run } = this.reconciler;
    const { status } = this.condition;
    if (!run?.isAlive || !run.isAnnounced) return;
    if (isResponsive && status === 'unresponsive' && run.isSpeaking) {
      this.log.add('responds again');
      this.reconciler.reportRunning(run);
    } else if (!isResponsive && (status === 'ready' || status === 'starting')) {
      const reason = run.isSpeaking ? NO_HEARTBEAT : withLastWords(why, run.lastLines.text);
      this.reporter.warn(`does not respond. ${reason}`);
      this.reporter.report('unresponsive', reason);
      this.desired.restart.settle(this.unavailable(reason));
    }
  }

  async usage(): Promise<Usage | undefined> {
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
      await this.reporter.changes.next(leftMs);
    }
  }

  /** Undefined if it should run soon. */
  private attachment(): Attachment | SwitchboardError | undefined {
    const { run, upgrade } = this.reconciler;
    const { status, reason } = this.condition;
    const { shouldRun, stopReason = DISABLED } = this.desired;
    if (!shouldRun) return this.unavailable(stopReason);
    if (run?.isAlive && (this.reconciler.isUpToDate(run) || upgrade.isPreparing))
      return run.attachment ?? this.unavailable('It has neither stdio nor a port.');
    if (run !== undefined || status === 'starting' || status === 'restarting') return undefined;
    return this.unavailable(reason ?? `Its status is ${status}.`);
  }

  private startNow(why: string | undefined): void {
    const { scheduler, upgrade } = this.reconciler;
    scheduler.reset();
    upgrade.reset();
    this.desired.stopReason = undefined;
    this.reporter.report(why === undefined ? 'starting' : 'restarting', why);
    this.reconciler.interrupt();
  }

  private halt(why: string): void {
    this.desired.stopReason = why;
    this.reconciler.scheduler.unblock();
    this.desired.restart.settle(this.unavailable(why));
    this.reconciler.interrupt();
    this.reporter.changes.notify();
  }

  private unavailable(why: string): SwitchboardError {
    return this.reconciler.scheduler.unavailable(why);
  }
}
