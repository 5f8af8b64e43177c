import type { Provider, RestartPolicy } from '../config/choices.ts';
import { SwitchboardError } from '../errors.ts';
import type { InstanceSpec } from './driver.ts';
import { HostedLog } from './log.ts';
import type { RunHistory } from './restart-policy.ts';

export interface HostedServer {
  id: string;
  name: string;
  project: string;
  /** The provider that the registration names, or that ran it before. */
  provider: Provider | undefined;
  /** Set if the registration names no provider, and `provider` ran the server before. */
  former?: Former | undefined;
  restartPolicy: RestartPolicy;
  enabled: boolean;
  /** Resolves secrets at every start. Throws a SwitchboardError if one is missing. */
  spec(): InstanceSpec;
  /** Changes whenever the server must be restarted. */
  revision: string;
  /** Only read when the server is first applied. */
  history: RunHistory;
}

export interface Former {
  hasVolumes: boolean;
}

export const CHANGED = 'Its configuration was changed.';
export const DISABLED = 'It is disabled.';

/** `Hosted` changes it, `Reconciler` acts on it. */
export class DesiredState {
  server: HostedServer;
  /** `remove` can be taken back; `shutdown` and `release` are final. */
  goal: 'run' | 'remove' | 'shutdown' | 'release' = 'run';
  stopReason: string | undefined;
  readonly restart = new RestartRequest();

  constructor(server: HostedServer) {
    this.server = server;
    this.stopReason = server.enabled ? undefined : DISABLED;
  }

  get shouldRun(): boolean {
    return this.goal === 'run' && this.server.enabled;
  }

  get isFinal(): boolean {
    return this.goal === 'shutdown' || this.goal === 'release';
  }

  /** Undefined if a secret is missing; the start reports that. */
  findSpec(): InstanceSpec | undefined {
    try {
      return this.server.spec();
    } catch {
      return undefined;
    }
  }
}

/** A restart requested by a user. Requests made before it settles share it. */
class RestartRequest {
  private pending: PromiseWithResolvers<void> | undefined;
  private needsStart = false;

  get isPending(): boolean {
    return this.needsStart;
  }

  /** Resolves when the new instance is ready, rejects with the reason why it is not. */
  get outcome(): Promise<void> {
    return this.pending?.promise ?? Promise.resolve();
  }

  request(): void {
    this.needsStart = true;
    if (this.pending !== undefined) return;
    this.pending = Promise.withResolvers();
    // The caller may have disconnected.
    this.pending.promise.catch(() => {});
  }

  started(): void {
    this.needsStart = false;
  }

  settle(problem: SwitchboardError | undefined): void {
    const { pending } = this;
    this.needsStart = false;
    this.pending = undefined;
    if (problem === undefined) pending?.resolve();
    else pending?.reject(problem);
  }
}

export type HostedStatus =
  /** It starts, or runs and has not completed the MCP handshake. */
  | 'starting'
  /** It runs and has completed the MCP handshake. */
  | 'ready'
  /** It runs, but does not answer the heartbeat or the handshake. */
  | 'unresponsive'
  /** It restarts within seconds. */
  | 'restarting'
  /** It is in a crash loop, or its start failed several times. */
  | 'backing_off'
  /** Its driver is unavailable. */
  | 'waiting'
  | 'stopped'
  /** It cannot start until something changes. */
  | 'failed';

export interface StatusReport {
  status: HostedStatus;
  since: Date;
  reason: string | undefined;
  nextTry: Date | undefined;
  provider: Provider | undefined;
  instanceId: string | undefined;
  startedAt: Date | undefined;
  url: string | undefined;
  history: RunHistory;
}

/** The part of a report that does not depend on the status. */
export type RunDetails = Pick<StatusReport, 'provider' | 'instanceId' | 'startedAt' | 'url' | 'history'>;

export interface HostedEvents {
  changed(id: string, report: StatusReport): void;
  /** A crash, a crash loop, an unresponsive server, or one that cannot run. */
  warned(message: string): void;
  /** A new instance runs: connect now, and call `initialized` after the handshake. */
  running(id: string): void;
}

/** Publishes the status of one server, its log and its warnings, with secrets redacted. */
export class StatusReporter {
  readonly log: HostedLog;
  private readonly desired: DesiredState;
  private readonly events: HostedEvents;
  private readonly redactProject: (project: string, text: string) => string;
  private readonly details: () => RunDetails;
  private readonly wakeups = new Set<() => void>();
  private current: StatusReport;
  private isMuted = false;

  constructor(
    desired: DesiredState,
    events: HostedEvents,
    redact: (project: string, text: string) => string,
    details: () => RunDetails,
  ) {
    this.desired = desired;
    this.events = events;
    this.redactProject = redact;
    this.details = details;
    this.log = new HostedLog((text) => this.redact(text));
    const status = desired.server.enabled ? 'starting' : 'stopped';
    this.current = { ...details(), status, since: new Date(), reason: undefined, nextTry: undefined };
  }

  get latest(): StatusReport {
    return this.current;
  }

  get status(): HostedStatus {
    return this.current.status;
  }

  mute(): void {
    this.isMuted = true;
  }

  report(status: HostedStatus, reason?: string, nextTry?: Date): void {
    const since = status === this.current.status ? this.current.since : new Date();
    const shown = reason === undefined ? undefined : this.redact(reason);
    this.current = { ...this.details(), status, since, reason: shown, nextTry };
    if (!this.isMuted) this.events.changed(this.desired.server.id, this.current);
    this.wake();
  }

  /** The quote comes from the log, so it is already redacted, and is not logged again. */
  warn(what: string, quote = ''): void {
    const shown = this.log.add(what);
    if (!this.isMuted) this.events.warned(`Hosted server "${this.desired.server.name}" ${shown}${quote}`);
  }

  /** Resolves with the next report or `wake`, or after the timeout. */
  next(timeoutMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => woken(), timeoutMs).unref();
      const woken = () => {
        clearTimeout(timer);
        this.wakeups.delete(woken);
        resolve();
      };
      this.wakeups.add(woken);
    });
  }

  wake(): void {
    for (const woken of [...this.wakeups]) woken();
  }

  unavailable(why: string, retryAt: Date | undefined): SwitchboardError {
    const { name } = this.desired.server;
    return new SwitchboardError('server_unavailable', `Server "${name}" is not available: ${why}`, {
      data: {
        server: name,
        status: this.status,
        ...(retryAt === undefined ? {} : { retryAt: retryAt.toISOString() }),
      },
    });
  }

  redacted({ code, message, data }: SwitchboardError): SwitchboardError {
    return new SwitchboardError(code, this.redact(message), { data });
  }

  private redact(text: string): string {
    return this.redactProject(this.desired.server.project, text);
  }
}
