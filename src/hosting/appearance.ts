import { SwitchboardError } from '../errors.ts';
import { Changes } from './clock.ts';
import type { Condition, HostedServer, HostedStatus } from './condition.ts';
import { HostedLog } from './log.ts';

export interface Audience {
  redact(project: string, text: string): string;
  changed(id: string, condition: Condition): void;
  warned(message: string): void;
}

/** What of a condition comes from elsewhere than from its status. */
export type Facts = Pick<Condition, 'provider' | 'instanceId' | 'startedAt' | 'url' | 'memory'>;

/** What others see of one server: its condition, its log, and warnings. */
export class Appearance {
  readonly log: HostedLog;
  readonly changes = new Changes();
  private readonly audience: Audience;
  private readonly server: () => Pick<HostedServer, 'id' | 'name' | 'project'>;
  private readonly facts: () => Facts;
  private current: Condition;
  private isSilent = false;

  constructor(
    audience: Audience,
    server: () => Pick<HostedServer, 'id' | 'name' | 'project'>,
    facts: () => Facts,
    status: HostedStatus,
  ) {
    this.audience = audience;
    this.server = server;
    this.facts = facts;
    this.log = new HostedLog((text) => this.redact(text));
    this.current = { ...facts(), status, since: new Date(), reason: undefined, nextTry: undefined };
  }

  get condition(): Condition {
    return this.current;
  }

  get status(): HostedStatus {
    return this.current.status;
  }

  /** Says nothing to anybody any more. */
  fallSilent(): void {
    this.isSilent = true;
  }

  show(status: HostedStatus, reason?: string, nextTry?: Date): void {
    const since = status === this.current.status ? this.current.since : new Date();
    const shown = reason === undefined ? undefined : this.redact(reason);
    this.current = { ...this.facts(), status, since, reason: shown, nextTry };
    if (!this.isSilent) this.audience.changed(this.server().id, this.current);
    this.changes.tell();
  }

  /** What is quoted of its log is there already, with its secrets masked. */
  warn(what: string, quote = ''): void {
    const shown = this.log.add(what);
    if (!this.isSilent) this.audience.warned(`Hosted server "${this.server().name}" ${shown}${quote}`);
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
    return this.audience.redact(this.server().project, text);
  }
}
