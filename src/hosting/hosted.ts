import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import type { Attachment, Condition, HostedServer } from './condition.ts';
import { describeCrash, MUTE, SILENT, withLastWords, withoutPeriod } from './crash-description.ts';
import type { Driver, Exit, InstanceEvents, InstanceSpec, Usage } from './driver.ts';
import { type HostedLog, LastLines } from './log.ts';
import { Provisioner } from './provisioner.ts';
import { CrashHistory, type End, RetryBackoff } from './restart-policy.ts';
import { RestartRequest } from './restart-request.ts';
import { Run } from './run.ts';
import { type ConditionDetails, StatusReporter } from './status-reporter.ts';
import type { Surroundings, Timing } from './surroundings.ts';
import { sleep, unlessAborted, withTimeout } from './timeouts.ts';

/** Why it is not started, until something changes. */
interface Hold {
  /** Whether it could not even be said what to start: a secret is missing. */
  isUnspecified: boolean;
}

/** A change that cannot be made to what runs just now. */
interface Postponed {
  /** Of the server as it is to be. */
  revision: string;
  reason: string;
  /** When it is tried again, on the clock that is never set. */
  dueAt: number;
  nextTry: Date;
}

const CHANGED = 'It was changed.';
const SWITCHED_OFF = 'It is switched off.';
/** What is left of an instance that ended by itself goes within that time. It is started anew within 5 s. */
const REMAINS_MS = 3_000;
/** A driver that takes so much longer to stop an instance than it was given is not waited for. */
const STOP_MARGIN_MS = 10_000;

/**
 * One hosted server. All that is done to it is done by one loop, one step after the other, so there is never more than one
 * instance. Whoever wants something else says what is wanted and interrupts the step under way, if that is one that waits.
 */
export class Hosted {
  private readonly timing: Timing;
  private readonly around: Surroundings;
  private server: HostedServer;
  /** `leaving`: it is no longer to be run; `ending`: nothing is. */
  private fate: 'kept' | 'leaving' | 'ending' | 'released' = 'kept';
  /** Why it is not to run, where it is not. */
  private ceased: string | undefined;
  private isOver = false;
  private step = new AbortController();
  private done: Promise<void> | undefined;

  private readonly reporter: StatusReporter;
  private readonly provisioner: Provisioner;
  private run: Run | undefined;

  private readonly history: CrashHistory;
  /** Where it was last published. */
  private hostPort: number | undefined;
  /** Whether the next start makes up for a crash. */
  private isRestart = false;
  private hold: Hold | undefined;
  /** Those that failed are no crashes: nothing ran. */
  private readonly starts: RetryBackoff;
  private readonly replacements: RetryBackoff;
  private postponed: Postponed | undefined;
  /** Whether what runs goes on until what the next instance needs is there. */
  private isPreparing = false;
  /** The time before which it is not started, on the clock that is never set. */
  private dueAt = 0;
  private readonly byHand = new RestartRequest();

  constructor(server: HostedServer, timing: Timing, around: Surroundings) {
    this.server = server;
    this.ceased = server.enabled ? undefined : SWITCHED_OFF;
    this.timing = timing;
    this.around = around;
    this.provisioner = new Provisioner(around, timing.away);
    this.history = new CrashHistory(server.memory, timing.restarts);
    this.starts = new RetryBackoff(timing.restarts);
    this.replacements = new RetryBackoff(timing.restarts);
    this.hostPort = server.memory.hostPort;
    this.reporter = new StatusReporter(
      around,
      () => this.server,
      () => this.details(),
      server.enabled ? 'starting' : 'stopped',
    );
  }

  get condition(): Condition {
    return this.reporter.condition;
  }

  get log(): HostedLog {
    return this.reporter.log;
  }

  get id(): string {
    return this.server.id;
  }

  /** What it was last told to be. */
  get wanted(): HostedServer {
    return this.server;
  }

  /** Who runs it, or did last. */
  get lastDriver(): Driver | undefined {
    return this.run?.driver ?? this.provisioner.driver;
  }

  /** Whether it is to run. */
  get isWanted(): boolean {
    return this.fate === 'kept' && this.server.enabled;
  }

  mayRunWith(driver: Driver): boolean {
    const { provider } = this.server;
    const isChosen = this.lastDriver === undefined || this.lastDriver === driver;
    return this.isWanted && isChosen && (provider === undefined || provider === driver.provider);
  }

  begin(): Promise<void> {
    this.done ??= this.live();
    return this.done;
  }

  /** Makes it be this one. False where it is too late: it has left. */
  update(server: HostedServer): boolean {
    if (this.isOver) return false;
    const before = this.server;
    const wasWanted = this.isWanted;
    this.server = server;
    if (this.fate === 'leaving') this.fate = 'kept';
    if (this.fate !== 'kept') return true;
    const isAnother = server.revision !== before.revision;
    if (server.provider !== before.provider) this.provisioner.forgetDriver();
    if (!server.enabled) {
      if (this.ceased !== SWITCHED_OFF) {
        this.log.add('stopped by hand');
        this.cease(SWITCHED_OFF);
      }
      return true;
    }
    if (isAnother || !wasWanted) this.startSoon(wasWanted ? CHANGED : undefined);
    else if (this.isReleasedFromHold(before)) this.startSoon(undefined);
    return true;
  }

  /** It is no longer to be run. */
  leave(): void {
    if (this.fate !== 'kept') return;
    this.fate = 'leaving';
    this.cease('It was removed.');
  }

  /** Settles when it does not run any more after it was told to leave. */
  async untilLeft(): Promise<void> {
    while (!this.isOver && (this.run !== undefined || this.reporter.status !== 'stopped'))
      await this.reporter.changes.next();
  }

  /** Stops it for good. Settles in any case. */
  async end(): Promise<void> {
    if (this.fate !== 'released') this.fate = 'ending';
    this.cease('Switchboard was stopped.');
    await withTimeout(this.begin(), this.timing.stopGraceMs + STOP_MARGIN_MS).catch(() => {});
  }

  /** Lets go of it, and says nothing more. What nobody could take over is stopped. */
  release(): void {
    if (this.fate === 'ending') return;
    this.fate = 'released';
    this.reporter.mute();
    const { run } = this;
    if (run?.isAlive && run.canBeReleased) {
      this.run = undefined;
      run.release();
    }
    this.cease('Another Switchboard takes over.');
  }

  restart(): Promise<void> {
    if (this.byHand.isOpen) return this.byHand.outcome;
    if (!this.isWanted) {
      const advice = this.ceased === SWITCHED_OFF ? ` Start it: switchboard start ${this.server.name}` : '';
      return Promise.reject(this.unavailable(`${this.ceased ?? SWITCHED_OFF}${advice}`));
    }
    this.byHand.ask();
    this.history.reset();
    this.log.add('restarted by hand');
    this.startSoon('It is restarted by hand.');
    return this.byHand.outcome;
  }

  /** The handshake with what runs is done: from now on it is ready. */
  speaks(): void {
    const { run } = this;
    if (!run?.isAlive || run.isSpeaking) return;
    run.isSpeaking = true;
    if (run.isAnnounced) this.showReady();
  }

  /** The word of the heartbeat. `why` says more, where the handshake is what it waits for. */
  responds(isResponsive: boolean, why?: string): void {
    const { run } = this;
    const { status } = this.condition;
    if (!run?.isAlive || !run.isAnnounced) return;
    if (isResponsive && status === 'unresponsive' && run.isSpeaking) {
      this.log.add('responds again');
      this.showReady();
    } else if (!isResponsive && (status === 'ready' || status === 'starting')) {
      const reason = run.isSpeaking ? SILENT : withLastWords(why ?? MUTE, run.lastLines.text);
      this.reporter.warn(`does not respond. ${reason}`);
      this.reporter.report('unresponsive', reason);
      this.byHand.settle(this.unavailable(reason));
    }
  }

  async usage(): Promise<Usage | undefined> {
    if (!this.run?.isAlive) return undefined;
    // It may end while it is asked.
    return this.run.instance.usage().catch(() => undefined);
  }

  async attach(): Promise<Attachment> {
    const until = performance.now() + this.timing.attachMs;
    for (;;) {
      const found = this.attachment();
      if (found instanceof SwitchboardError) throw found;
      if (found !== undefined) return found;
      const leftMs = until - performance.now();
      if (leftMs <= 0) throw this.unavailable(`It is still being started (${this.reporter.status}).`);
      await this.reporter.changes.next(leftMs);
    }
  }

  /** Undefined where it is there soon. */
  private attachment(): Attachment | SwitchboardError | undefined {
    const { run } = this;
    const { status, reason } = this.condition;
    if (!this.isWanted) return this.unavailable(this.ceased ?? SWITCHED_OFF);
    if (run?.isAlive && (this.isRight(run) || this.isPreparing))
      return run.attachment ?? this.unavailable('It has neither stdio nor a port.');
    if (run !== undefined || status === 'starting' || status === 'restarting') return undefined;
    return this.unavailable(reason ?? `Its status is ${status}.`);
  }

  private async live(): Promise<void> {
    this.showFirst();
    while (await this.next());
    this.reporter.changes.notify();
  }

  /** Does what is to be done next. False where there is nothing any more. */
  private async next(): Promise<boolean> {
    this.step = new AbortController();
    const { signal } = this.step;
    const { run } = this;
    // One that is to go is no longer asked why it ended.
    if (run !== undefined && !this.isRight(run)) await this.replace(run, signal);
    else if (run?.exit !== undefined) await this.runEnded(run, run.exit);
    else if (!this.isWanted) return this.rest(signal);
    else if (run !== undefined) await this.watch(run, signal);
    else if (this.hold !== undefined) await sleep(signal);
    else if (this.dueAt > performance.now()) await sleep(signal, this.dueAt - performance.now());
    else await this.start(signal);
    return true;
  }

  private isRight(run: Run): boolean {
    const { revision } = this.server;
    const isMeant = run.revision === revision || this.postponed?.revision === revision;
    return this.isWanted && isMeant && !this.byHand.isOpen;
  }

  /** One that is to be followed by another goes on until what that one needs is there. */
  private async replace(run: Run, signal: AbortSignal): Promise<void> {
    const problem = this.isWanted && run.isAlive ? await this.prepare(run, signal) : undefined;
    if (problem !== undefined && !signal.aborted) this.goOn(run, problem);
    else if (!signal.aborted || !run.isAlive || !this.isWanted) await this.stopRun(run);
  }

  /** Gives what is in the way. */
  private async prepare(run: Run, signal: AbortSignal): Promise<SwitchboardError | undefined> {
    const { server } = this;
    const driver = await this.provisioner.findDriver(server, signal);
    if (driver !== run.driver || driver.prepare === undefined) return undefined;
    try {
      const spec = specOf(server);
      if (spec === undefined) return undefined;
      this.isPreparing = true;
      const events = { log: (line: string) => void this.log.add(line) };
      await unlessAborted(driver.prepare(spec, events, signal), signal);
      return undefined;
    } catch (error) {
      return this.reporter.redacted(asSwitchboardError(error));
    } finally {
      this.isPreparing = false;
    }
  }

  /** The next one cannot be had, so this one stays; what it is to be is tried again. */
  private goOn(run: Run, { message }: SwitchboardError): void {
    const isChange = run.revision !== this.server.revision;
    const what = isChange ? 'The new image cannot be had: the server goes on with the old one' : undefined;
    const reason = `${what ?? 'The image cannot be had: what runs goes on'}. ${message}`;
    if (isChange) {
      const delayMs = this.replacements.failedForLong();
      const nextTry = new Date(Date.now() + delayMs);
      const { revision } = this.server;
      this.postponed = { revision, reason, dueAt: performance.now() + delayMs, nextTry };
    }
    if (this.condition.reason !== reason) this.reporter.warn(`is not started anew. ${reason}`);
    if (run.isSpeaking) this.showReady();
    else this.reporter.report('starting', this.postponed?.reason, this.postponed?.nextTry);
    this.byHand.settle(notStarted(reason));
  }

  /** There is no instance, and there is to be none. */
  private async rest(signal: AbortSignal): Promise<boolean> {
    if (this.reporter.status !== 'stopped') this.reporter.report('stopped', this.ceased);
    const isUrgent = this.fate === 'ending' || this.fate === 'released';
    if (isUrgent || (this.fate === 'leaving' && !this.provisioner.hasLeftover)) {
      this.isOver = true;
      return false;
    }
    if (this.provisioner.hasLeftover) await this.provisioner.removeLeftover(signal);
    else await sleep(signal);
    return true;
  }

  /** Until something happens. A run that lasts ends a crash loop. */
  private async watch(run: Run, signal: AbortSignal): Promise<void> {
    // Something else was wanted for a moment only.
    if (!run.isAnnounced) this.announce(run);
    else if (run.isSpeaking && this.reporter.status !== 'ready' && this.reporter.status !== 'unresponsive')
      this.showReady();
    if (this.provisioner.hasLeftover) return this.provisioner.removeLeftover(signal);
    if (this.postponed !== undefined) {
      await sleep(signal, Math.max(0, this.postponed.dueAt - performance.now()));
      if (!signal.aborted) this.postponed = undefined;
      return;
    }
    if (!this.history.isLoop) return sleep(signal);
    const { windowMs } = this.timing.restarts;
    await sleep(signal, Math.max(0, windowMs - run.uptimeMs));
    if (signal.aborted) return;
    this.history.forgive();
    this.log.add(`has run for ${windowMs / 1_000} s: it is in no crash loop any more`);
    this.reporter.report(this.reporter.status, this.condition.reason);
  }

  private async start(signal: AbortSignal): Promise<void> {
    const { reporter, provisioner } = this;
    const driver = await provisioner.findDriver(this.server, signal);
    if (driver === undefined) return;
    if (typeof driver === 'string') {
      this.stayAway(driver);
      return;
    }
    if (reporter.status !== 'starting') reporter.report('starting');
    await provisioner.untilReaped(driver, signal);
    if (signal.aborted) return;
    const { server } = this;
    const lastLines = new LastLines();
    const events: InstanceEvents = { log: (line) => lastLines.add(this.log.add(line)) };
    let spec: InstanceSpec | undefined;
    try {
      spec = { ...server.spec(), formerHostPort: this.hostPort };
      const wish = { isNew: () => this.byHand.isOpen, graceMs: this.timing.restartGraceMs };
      const { instance, isAdopted } = await provisioner.adoptOrStart(driver, spec, events, wish, signal);
      if (isAdopted) this.isRestart = false;
      this.started(new Run(driver, instance, server.revision, spec.limits, lastLines), signal);
    } catch (error) {
      if (!signal.aborted) await this.startFailed(driver, error, spec === undefined, signal);
    }
  }

  private started(run: Run, signal: AbortSignal): void {
    this.run = run;
    const { url } = run.instance;
    if (url !== undefined) this.hostPort = Number(new URL(url).port);
    void run.ended.then(() => {
      if (this.run === run) this.interrupt();
    });
    // Something else is wanted already: the next step sees to it.
    if (signal.aborted) return;
    if (this.isRestart) this.history.restarted();
    this.isRestart = false;
    this.starts.reset();
    this.replacements.reset();
    this.byHand.started();
    this.announce(run);
  }

  private announce(run: Run): void {
    run.isAnnounced = true;
    this.log.add(`runs (${run.driver.provider}, ${run.instance.id})`);
    if (run.isSpeaking) this.showReady();
    else this.reporter.report('starting');
    this.around.running(this.id);
  }

  private showReady(): void {
    this.reporter.report('ready', this.postponed?.reason, this.postponed?.nextTry);
    if (!this.byHand.isOpen) this.byHand.settle(undefined);
  }

  private async startFailed(
    driver: Driver,
    error: unknown,
    isUnspecified: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const away = await unlessAborted(
      driver.unavailable().catch(() => undefined),
      signal,
    );
    if (signal.aborted) return;
    if (away !== undefined) {
      this.stayAway(away);
      return;
    }
    // What cannot be run is quoted, and secrets may be in it.
    const problem = this.reporter.redacted(asSwitchboardError(error));
    // A fault of ours may pass: only what was said to stay is taken for that.
    const isLasting =
      error instanceof SwitchboardError && !problem.kind.retryable && problem.code !== 'internal';
    if (isLasting) this.refuse(problem, { isUnspecified });
    else this.tryAgain(`could not be started: ${withoutPeriod(problem.message)}`);
    this.byHand.settle(notStarted(problem.message));
  }

  /** It may be started later. That is no crash: nothing ran. */
  private tryAgain(how: string): void {
    if (this.server.restartPolicy === 'never') {
      this.stay('failed', how, '');
      return;
    }
    const delayMs = this.starts.failed();
    this.dueAt = performance.now() + delayMs;
    this.reporter.warn(`${how}. It is tried again ${delayText(delayMs)}.`);
    const status = this.starts.isBackingOff ? 'backing_off' : 'restarting';
    this.reporter.report(status, `It ${how}.`, new Date(Date.now() + delayMs));
  }

  /** It cannot be started as it is. */
  private refuse(problem: SwitchboardError, hold: Hold): void {
    this.hold = hold;
    this.isRestart = false;
    this.reporter.warn(`cannot be started: ${problem.message}`);
    this.reporter.report('failed', problem.message);
  }

  /** What runs it is away, or there is nothing that could. */
  private stayAway(why: string): void {
    const { status, reason } = this.condition;
    this.dueAt = performance.now() + this.provisioner.nextCheckMs();
    if (status !== 'waiting') this.reporter.warn(`has to wait: ${why}`);
    if (status !== 'waiting' || reason !== why) this.reporter.report('waiting', why);
    this.byHand.settle(this.unavailable(why));
  }

  /** An end that nobody asked for. */
  private async runEnded(run: Run, exit: Exit): Promise<void> {
    this.run = undefined;
    this.postponed = undefined;
    if (exit.isLost) {
      this.provisioner.markLost(run.driver);
      this.stayAway(exit.reason ?? `What runs it (${run.driver.provider}) does not answer.`);
      return;
    }
    const { how, reason } = describeCrash(exit, run.lastLines.text, run.limits);
    this.plan({ exit, reason, uptimeMs: run.uptimeMs }, how, run.lastLines.text);
    this.byHand.settle(this.unavailable(withLastWords(`It ${how}`, run.lastLines.text)));
    await withTimeout(run.instance.stop(REMAINS_MS), REMAINS_MS + 500).catch(() => {
      this.provisioner.markLeftover(run.driver);
    });
  }

  /** What comes after an end. */
  private plan(end: End, how: string, lastWords: string): void {
    const decision = this.history.ended(end, this.server.restartPolicy);
    const quote = lastWords === '' ? '' : ` Its last words: ${lastWords}`;
    if (decision.action === 'restart') {
      const { delayMs, isLoop } = decision;
      this.isRestart = true;
      this.dueAt = performance.now() + delayMs;
      const nextTry = new Date(Date.now() + delayMs);
      const loop = isLoop ? 'It is in a crash loop. ' : '';
      this.reporter.warn(`${how}. ${loop}It is started again ${delayText(delayMs)}.`, quote);
      this.reporter.report(isLoop ? 'backing_off' : 'restarting', `${loop}It ${how}.${quote}`, nextTry);
      return;
    }
    this.stay(decision.action === 'stay' ? decision.status : 'stopped', how, quote);
  }

  /** The policy lets it be. */
  private stay(status: 'stopped' | 'failed', how: string, quote: string): void {
    this.hold = { isUnspecified: false };
    const isFailure = status === 'failed';
    const words = `${how}. It is not started again (restart policy ${this.server.restartPolicy}).`;
    if (isFailure) this.reporter.warn(words, quote);
    else this.log.add(words);
    this.reporter.report(status, `It ${how}.${isFailure ? quote : ''}`);
  }

  private async stopRun(run: Run): Promise<void> {
    run.isStopping = true;
    this.postponed = undefined;
    // What kept it from being changed is over.
    if (this.isWanted && this.reporter.status === 'ready') this.reporter.report('restarting', CHANGED);
    if (this.fate === 'released' && run.canBeReleased) {
      run.release();
    } else {
      const { stopGraceMs, restartGraceMs } = this.timing;
      const graceMs = this.fate === 'ending' ? stopGraceMs : restartGraceMs;
      try {
        await withTimeout(run.instance.stop(graceMs), graceMs + STOP_MARGIN_MS);
      } catch (error) {
        this.provisioner.markLeftover(run.driver);
        this.reporter.warn(`could not be stopped: ${asSwitchboardError(error).message}`);
      }
    }
    this.run = undefined;
  }

  /** What is left of a delay that was set before Switchboard was started is waited for. */
  private showFirst(): void {
    const leftMs = this.history.delayLeftMs;
    if (leftMs === 0 || !this.isWanted) {
      this.reporter.report(this.reporter.status);
      return;
    }
    this.isRestart = true;
    this.dueAt = performance.now() + leftMs;
    this.reporter.report('backing_off', 'It is in a crash loop.', new Date(Date.now() + leftMs));
  }

  /** Whatever was in the way of a start counts no more. */
  private startSoon(why: string | undefined): void {
    this.history.forgive();
    this.starts.reset();
    this.replacements.reset();
    this.postponed = undefined;
    this.ceased = undefined;
    this.hold = undefined;
    this.isRestart = false;
    this.dueAt = 0;
    this.reporter.report(why === undefined ? 'starting' : 'restarting', why);
    this.interrupt();
  }

  private isReleasedFromHold({ restartPolicy }: HostedServer): boolean {
    if (this.hold === undefined) return false;
    if (restartPolicy !== this.server.restartPolicy) return true;
    if (!this.hold.isUnspecified) return false;
    return specOf(this.server) !== undefined;
  }

  /** It is not to run, at least for now. */
  private cease(why: string): void {
    this.ceased = why;
    this.hold = undefined;
    this.byHand.settle(this.unavailable(why));
    this.interrupt();
    this.reporter.changes.notify();
  }

  private interrupt(): void {
    this.step.abort();
  }

  private unavailable(why: string): SwitchboardError {
    const leftMs = this.dueAt - performance.now();
    const isTimed = this.isWanted && leftMs > 0;
    return this.reporter.unavailable(why, isTimed ? new Date(Date.now() + leftMs) : undefined);
  }

  private details(): ConditionDetails {
    const instance = this.run?.instance;
    const { hostPort } = this;
    return {
      provider: this.lastDriver?.provider,
      instanceId: instance?.id,
      startedAt: instance?.startedAt,
      url: instance?.url,
      memory: { ...this.history.memory, ...(hostPort === undefined ? {} : { hostPort }) },
    };
  }
}

/** Undefined where a secret is missing, which the start tells. */
function specOf(server: HostedServer): InstanceSpec | undefined {
  try {
    return server.spec();
  } catch {
    return undefined;
  }
}

/** Whoever asked for a restart has asked for nothing wrong, whatever is wrong with the server. */
function notStarted(why: string): SwitchboardError {
  return new SwitchboardError('server_start_failed', why);
}

function delayText(ms: number): string {
  return ms === 0 ? 'at once' : `in ${ms / 1_000} s`;
}
