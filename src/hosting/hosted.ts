import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { asleep, Changes, unlessAborted, within } from './clock.ts';
import type { Attachment, Condition, HostedServer, HostedStatus } from './condition.ts';
import { CrashHistory, type End } from './crash-history.ts';
import type { Driver, Exit, Instance, InstanceEvents, InstanceSpec, Provider, Usage } from './driver.ts';
import { HostedLog, LastLines } from './log.ts';
import type { RestartRules } from './restart-policy.ts';
import { describeExit, Run } from './run.ts';

export interface Timing {
  restarts: RestartRules;
  /** Between SIGTERM and SIGKILL, when Switchboard stops. */
  stopGraceMs: number;
  /** The same where only this server is stopped, or restarted. */
  restartGraceMs: number;
  /** So long somebody who wants to speak with a server waits for its start. */
  attachMs: number;
  /** How often we look whether what runs it is there again: twice as long each time. */
  away: { firstMs: number; maxMs: number };
}

/** What a server needs of those who look after all of them. */
export interface Surroundings {
  choose(asked: Provider | undefined): Promise<Driver>;
  /** Settles when what others left behind is removed, or cannot be. Nothing may be started before. */
  cleared(driver: Driver): Promise<void>;
  /** Removes what is left of servers that are to run no more. */
  clear(driver: Driver): Promise<void>;
  redact(project: string, text: string): string;
  changed(id: string, condition: Condition): void;
  warned(message: string): void;
  running(id: string): void;
}

/** Why it is not started, until something changes. */
interface Hold {
  /** Whether it could not even be said what to start: a secret is missing. */
  isUnspecified: boolean;
}

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
  readonly log: HostedLog;
  condition: Condition;
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

  private driver: Driver | undefined;
  private run: Run | undefined;
  /** Where something of it may still be, because it was lost or could not be stopped. */
  private leftover: Driver | undefined;

  private readonly history: CrashHistory;
  /** Whether the next start makes up for a crash. */
  private isRestart = false;
  private hold: Hold | undefined;
  /** The time before which it is not started, on the clock that is never set. */
  private dueAt = 0;
  /** How often what runs it was found to be away, in a row. */
  private timesAway = 0;
  /** Of those who restart it by hand. */
  private asked: PromiseWithResolvers<void> | undefined;
  private readonly changes = new Changes();

  constructor(server: HostedServer, timing: Timing, around: Surroundings) {
    this.server = server;
    this.timing = timing;
    this.around = around;
    this.log = new HostedLog((text) => around.redact(this.server.project, text));
    this.history = new CrashHistory(server.memory, timing.restarts);
    this.condition = this.describe(server.enabled ? 'starting' : 'stopped', undefined, undefined);
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
    return this.run?.driver ?? this.driver ?? this.leftover;
  }

  /** Whether it is to run. */
  get isWanted(): boolean {
    return this.fate === 'kept' && this.server.enabled;
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
    if (!server.enabled) {
      if (wasWanted) this.cease(SWITCHED_OFF);
      return true;
    }
    const isAnother = server.revision !== before.revision;
    if (isAnother) this.driver = undefined;
    if (isAnother || !wasWanted) this.startSoon(wasWanted ? 'It was changed.' : undefined);
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
    while (!this.isOver && (this.run !== undefined || this.condition.status !== 'stopped'))
      await this.changes.next();
  }

  /** Stops it for good. Settles in any case. */
  async end(): Promise<void> {
    if (this.fate !== 'released') this.fate = 'ending';
    this.cease('Switchboard was stopped.');
    await within(this.begin(), this.timing.stopGraceMs + STOP_MARGIN_MS).catch(() => {});
  }

  /** Lets go of it, and says nothing more. What nobody could take over is stopped. */
  release(): void {
    if (this.fate === 'ending') return;
    this.fate = 'released';
    const { run } = this;
    if (run?.isAlive && run.canBeReleased) {
      this.run = undefined;
      run.instance.release?.();
    }
    this.cease('Another Switchboard takes over.');
  }

  restart(): Promise<void> {
    if (this.asked !== undefined) return this.asked.promise;
    if (!this.isWanted) return Promise.reject(this.unavailable(this.ceased ?? SWITCHED_OFF));
    this.asked = Promise.withResolvers();
    // Whoever asked may have gone.
    this.asked.promise.catch(() => {});
    this.history.reset();
    this.log.add('restarted by hand');
    this.startSoon('It is restarted by hand.');
    return this.asked.promise;
  }

  responds(isResponsive: boolean): void {
    const { status } = this.condition;
    if (isResponsive && status === 'unresponsive') {
      this.log.add('responds again');
      this.show('ready');
    } else if (!isResponsive && status === 'ready') {
      const why = 'It runs, but does not answer the heartbeat. It may be at long work: it is not restarted.';
      this.warn(`does not respond. ${why}`);
      this.show('unresponsive', why);
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
      if (leftMs <= 0) throw this.unavailable(`It is still being started (${this.condition.status}).`);
      await this.changes.next(leftMs);
    }
  }

  /** Undefined where it is there soon. */
  private attachment(): Attachment | SwitchboardError | undefined {
    const { run } = this;
    const { status, reason } = this.condition;
    if (!this.isWanted) return this.unavailable(this.ceased ?? SWITCHED_OFF);
    if (run?.isAlive && this.isRight(run))
      return run.attachment ?? this.unavailable('It has neither stdio nor a port.');
    if (run !== undefined || status === 'starting' || status === 'restarting') return undefined;
    return this.unavailable(reason ?? `Its status is ${status}.`);
  }

  private async live(): Promise<void> {
    this.showFirst();
    while (await this.next());
    this.changes.tell();
  }

  /** Does what is to be done next. False where there is nothing any more. */
  private async next(): Promise<boolean> {
    this.step = new AbortController();
    const { signal } = this.step;
    const { run } = this;
    // One that is to go is no longer asked why it ended.
    if (run !== undefined && !this.isRight(run)) await this.stopRun(run);
    else if (run?.exit !== undefined) await this.runEnded(run, run.exit);
    else if (!this.isWanted) return this.rest(signal);
    else if (run !== undefined) await this.watch(run, signal);
    else if (this.hold !== undefined) await asleep(signal);
    else if (this.dueAt > performance.now()) await asleep(signal, this.dueAt - performance.now());
    else await this.start(signal);
    return true;
  }

  private isRight(run: Run): boolean {
    return this.isWanted && run.revision === this.server.revision && this.asked === undefined;
  }

  /** There is no instance, and there is to be none. */
  private async rest(signal: AbortSignal): Promise<boolean> {
    if (this.condition.status !== 'stopped') this.show('stopped', this.ceased);
    const isUrgent = this.fate === 'ending' || this.fate === 'released';
    if (isUrgent || (this.fate === 'leaving' && this.leftover === undefined)) {
      this.isOver = true;
      return false;
    }
    if (this.leftover !== undefined) await this.clearLeftover(this.leftover, signal);
    else await asleep(signal);
    return true;
  }

  private async clearLeftover(driver: Driver, signal: AbortSignal): Promise<void> {
    try {
      if ((await unlessAborted(driver.unavailable(), signal)) === undefined && !signal.aborted) {
        await this.around.clear(driver);
        this.leftover = undefined;
        return;
      }
    } catch {
      // As good as away.
    }
    await asleep(signal, this.awayDelay());
  }

  /** Until something happens. A run that lasts ends a crash loop. */
  private async watch(run: Run, signal: AbortSignal): Promise<void> {
    // Something else was wanted for a moment only.
    if (this.condition.status !== 'ready' && this.condition.status !== 'unresponsive') this.show('ready');
    if (!this.history.isLoop) return asleep(signal);
    const { windowMs } = this.timing.restarts;
    await asleep(signal, Math.max(0, windowMs - run.uptimeMs));
    if (signal.aborted) return;
    this.history.forgive();
    this.log.add(`has run for ${windowMs / 1_000} s: it is in no crash loop any more`);
    this.show(this.condition.status, this.condition.reason);
  }

  private async start(signal: AbortSignal): Promise<void> {
    const driver = await this.findDriver(signal);
    if (driver === undefined || signal.aborted) return;
    if (this.condition.status !== 'starting') this.show('starting');
    await unlessAborted(this.around.cleared(driver), signal);
    if (signal.aborted) return;
    const { server } = this;
    const lastLines = new LastLines();
    const events: InstanceEvents = { log: (line) => lastLines.add(this.log.add(line)) };
    let spec: InstanceSpec | undefined;
    try {
      spec = server.spec();
      const instance = await this.adoptOrStart(driver, spec, events, signal);
      this.started(new Run(driver, instance, server.revision, lastLines), signal);
    } catch (error) {
      if (driver.survivors !== undefined) this.leftover = driver;
      if (!signal.aborted) await this.startFailed(driver, error, spec === undefined, signal);
    }
  }

  /** Undefined where there is none now. */
  private async findDriver(signal: AbortSignal): Promise<Driver | undefined> {
    try {
      if (this.driver === undefined) {
        const chosen = await unlessAborted(this.around.choose(this.server.provider), signal);
        // Meanwhile it may have been asked for another one.
        if (signal.aborted) return undefined;
        this.driver = chosen;
      } else if (this.timesAway > 0) {
        const why = await unlessAborted(this.driver.unavailable(), signal);
        if (signal.aborted) return undefined;
        if (why !== undefined) {
          this.stayAway(why);
          return undefined;
        }
      }
    } catch (error) {
      if (!signal.aborted) this.stayAway(asSwitchboardError(error).message);
      return undefined;
    }
    this.timesAway = 0;
    return this.driver;
  }

  /** Adopts first, also where it has just ended: what an engine that was away has left there would run beside the new one. */
  private async adoptOrStart(
    driver: Driver,
    spec: InstanceSpec,
    events: InstanceEvents,
    signal: AbortSignal,
  ): Promise<Instance> {
    const survivor = await driver.survivors?.adopt(spec, events);
    if (survivor !== undefined && this.asked === undefined) {
      this.isRestart = false;
      return survivor;
    }
    await survivor?.stop(this.timing.restartGraceMs);
    signal.throwIfAborted();
    return driver.start(spec, events, signal);
  }

  private started(run: Run, signal: AbortSignal): void {
    this.run = run;
    this.leftover = undefined;
    void run.ended.then(() => {
      if (this.run === run) this.interrupt();
    });
    // Something else is wanted already: the next step sees to it.
    if (signal.aborted) return;
    if (this.isRestart) this.history.restarted();
    this.isRestart = false;
    this.settleAsked(undefined);
    this.log.add(`runs (${run.driver.provider}, ${run.instance.id})`);
    this.show('ready');
    this.around.running(this.id);
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
    const problem = asSwitchboardError(error);
    // A fault of ours may pass: only what was said to stay is taken for that.
    const isLasting =
      error instanceof SwitchboardError && !problem.kind.retryable && problem.code !== 'internal';
    if (isLasting) this.refuse(problem, { isUnspecified });
    else {
      const end = { exit: undefined, reason: problem.message, uptimeMs: 0 };
      this.plan(end, `could not be started: ${withoutPeriod(problem.message)}`, '');
    }
    this.settleAsked(problem);
  }

  /** It cannot be started as it is. */
  private refuse(problem: SwitchboardError, hold: Hold): void {
    this.hold = hold;
    this.isRestart = false;
    this.warn(`cannot be started: ${problem.message}`);
    this.show('failed', problem.message);
  }

  /** What runs it is away, or there is nothing that could. */
  private stayAway(why: string): void {
    const { status, reason } = this.condition;
    const delayMs = this.awayDelay();
    this.dueAt = performance.now() + delayMs;
    if (status !== 'waiting') this.warn(`has to wait: ${why}`);
    if (status !== 'waiting' || reason !== why) this.show('waiting', why);
    this.settleAsked(this.unavailable(why));
  }

  private awayDelay(): number {
    const { firstMs, maxMs } = this.timing.away;
    return Math.min(firstMs * 2 ** Math.min(this.timesAway++, 20), maxMs);
  }

  /** An end that nobody asked for. */
  private async runEnded(run: Run, exit: Exit): Promise<void> {
    this.run = undefined;
    if (exit.isLost) {
      this.leftover = run.driver;
      this.timesAway = 0;
      this.stayAway(exit.reason ?? `What runs it (${run.driver.provider}) does not answer.`);
      return;
    }
    const how = describeExit(exit);
    this.plan({ exit, reason: exit.reason ?? how, uptimeMs: run.uptimeMs }, how, run.lastLines.text);
    await within(run.instance.stop(REMAINS_MS), REMAINS_MS + 500).catch(() => {
      this.leftover = run.driver;
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
      const when = delayMs === 0 ? 'at once' : `in ${delayMs / 1_000} s`;
      const loop = isLoop ? 'It is in a crash loop. ' : '';
      this.warn(`${how}. ${loop}It is started again ${when}.`, quote);
      if (isLoop) this.show('backing_off', `${loop}It ${how}.`, nextTry);
      else this.show('restarting', `It ${how}.`, nextTry);
      return;
    }
    this.hold = { isUnspecified: false };
    const isFailure = decision.action === 'stay' && decision.status === 'failed';
    const words = `${how}. It is not started again (restart policy ${this.server.restartPolicy}).`;
    if (isFailure) this.warn(words, quote);
    else this.log.add(words);
    this.show(isFailure ? 'failed' : 'stopped', `It ${how}.`);
  }

  private async stopRun(run: Run): Promise<void> {
    run.isStopping = true;
    if (this.fate === 'released' && run.canBeReleased) {
      run.instance.release?.();
    } else {
      const { stopGraceMs, restartGraceMs } = this.timing;
      const graceMs = this.fate === 'ending' ? stopGraceMs : restartGraceMs;
      try {
        await within(run.instance.stop(graceMs), graceMs + STOP_MARGIN_MS);
      } catch (error) {
        this.leftover = run.driver;
        this.warn(`could not be stopped: ${asSwitchboardError(error).message}`);
      }
    }
    this.run = undefined;
  }

  /** What is left of a delay that was set before Switchboard was started is waited for. */
  private showFirst(): void {
    const leftMs = this.history.delayLeftMs;
    if (leftMs === 0 || !this.isWanted) {
      this.show(this.condition.status);
      return;
    }
    this.isRestart = true;
    this.dueAt = performance.now() + leftMs;
    const why = `It is in a crash loop: the next start is in ${Math.ceil(leftMs / 1_000)} s.`;
    this.show('backing_off', why, new Date(Date.now() + leftMs));
  }

  /** Whatever was in the way of a start counts no more. */
  private startSoon(why: string | undefined): void {
    this.history.forgive();
    this.hold = undefined;
    this.isRestart = false;
    this.dueAt = 0;
    this.show(why === undefined ? 'starting' : 'restarting', why);
    this.interrupt();
  }

  private isReleasedFromHold({ restartPolicy }: HostedServer): boolean {
    if (this.hold === undefined) return false;
    if (restartPolicy !== this.server.restartPolicy) return true;
    if (!this.hold.isUnspecified) return false;
    try {
      this.server.spec();
      return true;
    } catch {
      return false;
    }
  }

  /** It is not to run, at least for now. */
  private cease(why: string): void {
    this.ceased = why;
    this.hold = undefined;
    this.settleAsked(this.unavailable(why));
    this.interrupt();
    this.changes.tell();
  }

  private interrupt(): void {
    this.step.abort();
  }

  private settleAsked(problem: SwitchboardError | undefined): void {
    const { asked } = this;
    this.asked = undefined;
    if (problem === undefined) asked?.resolve();
    else asked?.reject(problem);
  }

  private unavailable(why: string): SwitchboardError {
    const leftMs = this.dueAt - performance.now();
    const isTimed = this.isWanted && leftMs > 0;
    return new SwitchboardError(
      'server_unavailable',
      `Server "${this.server.name}" is not available: ${why}`,
      {
        data: {
          server: this.server.name,
          status: this.condition.status,
          ...(isTimed ? { retryAt: new Date(Date.now() + leftMs).toISOString() } : {}),
        },
      },
    );
  }

  /** What is quoted of its log is there already, with its secrets masked. */
  private warn(what: string, quote = ''): void {
    const shown = this.log.add(what);
    if (this.fate !== 'released') this.around.warned(`Hosted server "${this.server.name}" ${shown}${quote}`);
  }

  private show(status: HostedStatus, reason?: string, nextTry?: Date): void {
    this.condition = this.describe(status, reason, nextTry);
    if (this.fate !== 'released') this.around.changed(this.id, this.condition);
    this.changes.tell();
  }

  private describe(status: HostedStatus, reason: string | undefined, nextTry: Date | undefined): Condition {
    const before = this.condition as Condition | undefined;
    const { run } = this;
    const shown = reason && this.around.redact(this.server.project, reason);
    return {
      status,
      since: before?.status === status ? before.since : new Date(),
      reason: shown,
      nextTry,
      provider: this.lastDriver?.provider,
      instanceId: run?.instance.id,
      startedAt: run?.instance.startedAt,
      url: run?.instance.url,
      memory: this.history.memory,
    };
  }
}

function withoutPeriod(text: string): string {
  return text.replace(/\.$/, '');
}
