import type { Attachment } from '../channels/hosted.ts';
import { SwitchboardError } from '../errors.ts';
import { describeExit } from './crash-description.ts';
import type { Driver, Exit, Instance, Limits } from './driver.ts';
import type { LastLines } from './log.ts';

/** One run of a hosted server: its instance, and what became of it. */
export class Run {
  readonly driver: Driver;
  readonly instance: Instance;
  /** Of the server that was started. */
  readonly revision: string;
  readonly limits: Limits;
  readonly lastLines: LastLines;
  /** Settles with its end, and never fails. */
  readonly ended: Promise<SwitchboardError>;
  /** Undefined while it runs. */
  exit: Exit | undefined;
  /** Whether we ended it: then its exit is no crash. */
  isStopping = false;
  /** Whether it was told that it runs. */
  isAnnounced = false;
  /** Whether the handshake is done. */
  isSpeaking = false;
  private readonly letGo = Promise.withResolvers<SwitchboardError>();

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
    this.ended = Promise.race([exited, this.letGo.promise]);
  }

  /** It can be spoken with. */
  get isAlive(): boolean {
    return this.exit === undefined && !this.isStopping;
  }

  get uptimeMs(): number {
    return Math.max(0, Date.now() - this.instance.startedAt.getTime());
  }

  /** Whether it can be left running for somebody else. */
  get canBeReleased(): boolean {
    return this.driver.survivors !== undefined && this.instance.release !== undefined;
  }

  /** Leaves it running for somebody else. Who speaks with it through us can do so no more. */
  release(): void {
    this.isStopping = true;
    this.instance.release?.();
    this.letGo.resolve(
      new SwitchboardError('server_unavailable', 'The server is run by another Switchboard now.'),
    );
  }

  /** Undefined for one that is reached in no way. */
  get attachment(): Attachment | undefined {
    const { stdio, url } = this.instance;
    if (stdio !== undefined) return { kind: 'stdio', ...stdio, ended: this.ended };
    return url === undefined ? undefined : { kind: 'url', url, ended: this.ended };
  }

  private describeEnd(exit: Exit): SwitchboardError {
    if (this.isStopping) return new SwitchboardError('server_unavailable', 'The server was stopped.');
    if (exit.isLost) {
      const why = exit.reason ?? `what runs it (${this.driver.provider}) does not answer`;
      return new SwitchboardError('server_unavailable', `The server is out of reach: ${why}.`);
    }
    const words = this.lastLines.text;
    const quote = words === '' ? '.' : `; its last words: ${words}`;
    return new SwitchboardError('server_unavailable', `The server ${describeExit(exit)}${quote}`, {
      data: { exitCode: exit.code ?? null, signal: exit.signal ?? null },
    });
  }
}
