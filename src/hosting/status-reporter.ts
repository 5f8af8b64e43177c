import { SwitchboardError } from '../errors.ts';
import type { Condition, HostedServer, HostedStatus } from './condition.ts';
import { HostedLog } from './log.ts';
import { ChangeNotifier } from './timeouts.ts';

export interface StatusEvents {
  redact(project: string, text: string): string;
  changed(id: string, condition: Condition): void;
  warned(message: string): void;
}

/** What of a condition comes from elsewhere than from its status. */
export type ConditionDetails = Pick<Condition, 'provider' | 'instanceId' | 'startedAt' | 'url' | 'memory'>;

/** What others see of one server: its condition, its log, and warnings. */
export class StatusReporter {
  readonly log: HostedLog;
  readonly changes = new ChangeNotifier();
  private readonly events: StatusEvents;
  private readonly server: () => Pick<HostedServer, 'id' | 'name' | 'project'>;
  private readonly details: () => ConditionDetails;
  private current: Condition;
  private isMuted = false;

  constructor(
    events: StatusEvents,
    server: () => Pick<HostedServer, 'id' | 'name' | 'project'>,
    details: () => ConditionDetails,
    status: HostedStatus,
  ) {
    this.events = events;
    this.server = server;
    this.details = details;
    this.log = new HostedLog((text) => this.redact(text));
    this.current = { ...details(), status, since: new Date(), reason: undefined, nextTry: undefined };
  }

  get condition(): Condition {
    return this.current;
  }

  get status(): HostedStatus {
    return this.current.status;
  }

  /** Says nothing to anybody any more. */
  mute(): void {
    this.isMuted = true;
  }

  report(status: HostedStatus, reason?: string, nextTry?: Date): void {
    const since = status === this.current.status ? this.current.since : new Date();
    const shown = reason === undefined ? undefined : this.redact(reason);
    this.current = { ...this.details(), status, since, reason: shown, nextTry };
    if (!this.isMuted) this.events.changed(this.server().id, this.current);
    this.changes.notify();
  }

  /** What is quoted of its log is there already, with its secrets masked. */
  warn(what: string, quote = ''): void {
    const shown = this.log.add(what);
    if (!this.isMuted) this.events.warned(`Hosted server "${this.server().name}" ${shown}${quote}`);
  }

  /** For whoever wants something of a server that does not run. */
  unavailable(why: string, retryAt: Date | undefined): SwitchboardError {
    const { name } = this.server();
    return new SwitchboardError('server_unavailable', `Server "${name}" is not available: ${why}`, {
      data: {
        server: name,
        status: this.status,
        ...(retryAt === undefined ? {} : { retryAt: retryAt.toISOString() }),
      },
    });
  }

  /** The same without secrets, which it may quote. */
  redacted({ code, message, data }: SwitchboardError): SwitchboardError {
    return new SwitchboardError(code, this.redact(message), { data });
  }

  private redact(text: string): string {
    return this.events.redact(this.server().project, text);
  }
}
