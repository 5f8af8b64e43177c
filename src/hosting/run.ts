import type { Attachment } from '../channels/hosted.ts';
import { SwitchboardError } from '../errors.ts';
import { describeExit, withLastWords } from './crash-description.ts';
import type { Driver, Exit, Instance, Limits } from './driver.ts';
import type { LastLines } from './log.ts';

/** One run of a hosted server, from the start of its instance to its exit. */
export class Run {
  readonly driver: Driver;
  readonly instance: Instance;
  /** Of the server when it was started. */
  readonly revision: string;
  readonly limits: Limits;
  readonly lastLines: LastLines;
  /** Resolves when it exits or is released. Never rejects. */
  readonly ended: Promise<SwitchboardError>;
  /** Undefined while it runs. */
  exit: Exit | undefined;
  /** Whether we stop it: then its exit is not a crash. */
  isStopping = false;
  /** Whether `running` was emitted. */
  isAnnounced = false;
  /** Whether the handshake is done. */
  isSpeaking = false;
  private readonly released = Promise.withResolvers<SwitchboardError>();

  constructor(driver: Driver, instance: Instance, revision: string, limits: Limits, lastLines: LastLines) {
    this.driver = driver;
    this.instance = instance;
    this.revision = revision;
    this.limits = limits;
    this.lastLines = lastLines;
    const exited = instance.exited.then((exit) => {
      this.exit = exit;
      return this.describeEnd(exit);
    });
    this.ended = Promise.race([exited, this.released.promise]);
  }

  get isAlive(): boolean {
    return this.exit === undefined && !this.isStopping;
  }

  get uptimeMs(): number {
    return Math.max(0, Date.now() - this.instance.startedAt.getTime());
  }

  /** Whether another Switchboard can adopt it. */
  get canBeReleased(): boolean {
    return this.driver.survivors !== undefined && this.instance.release !== undefined;
  }

  /** Leaves it running for another Switchboard, and ends the connections to it. */
  release(): void {
    this.isStopping = true;
    this.instance.release?.();
    this.released.resolve(
      new SwitchboardError('server_unavailable', 'The server is run by another Switchboard now.'),
    );
  }

  /**
   * The pipes belong to the instance, and the next user attaches to the same ones: remove your listeners when you are done,
   * and do not end or destroy a pipe.
   */
  get attachment(): Attachment | undefined {
    const { stdio, url } = this.instance;
    if (stdio !== undefined) return { kind: 'stdio', ...stdio, ended: this.ended };
    return url === undefined ? undefined : { kind: 'url', url, ended: this.ended };
  }

  private describeEnd(exit: Exit): SwitchboardError {
    if (this.isStopping) return new SwitchboardError('server_unavailable', 'The server was stopped.');
    if (exit.isLost) {
      const why = exit.reason ?? `its provider (${this.driver.provider}) does not answer`;
      return new SwitchboardError('server_unavailable', `The server is out of reach: ${why}.`);
    }
    const message = withLastWords(`The server ${describeExit(exit)}.`, this.lastLines.text);
    return new SwitchboardError('server_unavailable', message, {
      data: { exitCode: exit.code ?? null, signal: exit.signal ?? null },
    });
  }
}
