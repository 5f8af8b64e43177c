import { SwitchboardError } from '../errors.ts';
import type { Condition, HostedStatus } from './condition.ts';
import type { DesiredState } from './desired-state.ts';
import { HostedLog } from './log.ts';

export interface HostedEvents {
  /** Its status, or another part of its condition, has changed. */
  changed(id: string, condition: Condition): void;
  /** A crash, a crash loop, an unresponsive server, or one that cannot run. */
  warned(message: string): void;
  /** A new instance runs: connect now, and call `speaks` after the handshake. */
  running(id: string): void;
}

/** The part of a condition that does not come from its status. */
export type ConditionDetails = Pick<Condition, 'provider' | 'instanceId' | 'startedAt' | 'url' | 'memory'>;

/** Publishes the condition of one server, its log and its warnings, with secrets redacted. */
export class StatusReporter {
  readonly log: HostedLog;
  readonly changes = new ChangeNotifier();
  private readonly desired: DesiredState;
  private readonly events: HostedEvents;
  private readonly redactProject: (project: string, text: string) => string;
  private readonly details: () => ConditionDetails;
  private current: Condition;
  private isMuted = false;

  constructor(
    desired: DesiredState,
    events: HostedEvents,
    redact: (project: string, text: string) => string,
    details: () => ConditionDetails,
  ) {
    this.desired = desired;
    this.events = events;
    this.redactProject = redact;
    this.details = details;
    this.log = new HostedLog((text) => this.redact(text));
    const status = desired.server.enabled ? 'starting' : 'stopped';
    this.current = { ...details(), status, since: new Date(), reason: undefined, nextTry: undefined };
  }

  get condition(): Condition {
    return this.current;
  }

  get status(): HostedStatus {
    return this.current.status;
  }

  /** Emits no more events. */
  mute(): void {
    this.isMuted = true;
  }

  report(status: HostedStatus, reason?: string, nextTry?: Date): void {
    const since = status === this.current.status ? this.current.since : new Date();
    const shown = reason === undefined ? undefined : this.redact(reason);
    this.current = { ...this.details(), status, since, reason: shown, nextTry };
    if (!this.isMuted) this.events.changed(this.desired.server.id, this.current);
    this.changes.notify();
  }

  /** The quote comes from the log, so it is redacted and is not logged again. */
  warn(what: string, quote = ''): void {
    const shown = this.log.add(what);
    if (!this.isMuted) this.events.warned(`Hosted server "${this.desired.server.name}" ${shown}${quote}`);
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

/** Lets callers wait for the next change. */
class ChangeNotifier {
  private readonly waiting = new Set<() => void>();

  /** Resolves with the next change, or after the timeout. */
  next(timeoutMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => notified(), timeoutMs).unref();
      const notified = () => {
        clearTimeout(timer);
        this.waiting.delete(notified);
        resolve();
      };
      this.waiting.add(notified);
    });
  }

  notify(): void {
    for (const notified of [...this.waiting]) notified();
  }
}
