import type { Attachment } from '../channels/hosted.ts';
import type { OutputTail } from '../channels/output-tail.ts';
import type { Limits } from '../config/limits.ts';
import { SwitchboardError } from '../errors.ts';
import { type Driver, type Exit, formatBytes, type Instance } from './driver.ts';

/** One run of a hosted server, from the start of its instance to its exit. */
export class Run {
  readonly driver: Driver;
  readonly instance: Instance;
  /** The server's revision at the start. */
  readonly revision: string;
  readonly limits: Limits;
  readonly lastLines: OutputTail;
  /** Resolves when it exits or is released. Never rejects. */
  readonly ended: Promise<SwitchboardError>;
  exit: Exit | undefined;
  /** If we stop it, its exit is not a crash. */
  isStopping = false;
  isAnnounced = false;
  isInitialized = false;
  private readonly released = Promise.withResolvers<SwitchboardError>();

  constructor(driver: Driver, instance: Instance, revision: string, limits: Limits, lastLines: OutputTail) {
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

  get canBeReleased(): boolean {
    return this.driver.survivors !== undefined && this.instance.release !== undefined;
  }

  /** Leaves it running for another Switchboard, and ends the connections to it. */
  release(): void {
    this.isStopping = true;
    this.instance.release?.();
    this.released.resolve(
      new SwitchboardError('server_unavailable', 'Another Switchboard runs the server now.'),
    );
  }

  /**
   * The pipes belong to the instance, and the next user attaches to the same ones: remove your listeners when you are done, and
   * do not end or destroy a pipe.
   */
  get attachment(): Attachment | undefined {
    const { stdio, url } = this.instance;
    if (stdio !== undefined) return { kind: 'stdio', ...stdio, ended: this.ended };
    return url === undefined ? undefined : { kind: 'url', url, ended: this.ended };
  }

  /** `reason` quotes the last log lines, unless the driver knows the reason. */
  describeCrash(exit: Exit): { how: string; reason: string } {
    const lastLines = this.lastLines.text;
    const limit = exit.reason === undefined ? reachedLimit(lastLines, this.limits) : undefined;
    const how = describeExit(limit === undefined ? exit : { ...exit, reason: `perhaps it reached ${limit}` });
    return { how, reason: exit.reason ?? withLastLines(how, lastLines) };
  }

  private describeEnd(exit: Exit): SwitchboardError {
    if (this.isStopping) return new SwitchboardError('server_unavailable', 'The server was stopped.');
    if (exit.isLost) {
      const why = exit.reason ?? `its provider (${this.driver.provider}) does not answer`;
      return new SwitchboardError('server_unavailable', `The server cannot be reached: ${why}.`);
    }
    const message = withLastLines(`The server ${describeExit(exit)}.`, this.lastLines.text);
    return new SwitchboardError('server_unavailable', message, {
      data: { exitCode: exit.code ?? null, signal: exit.signal ?? null },
    });
  }
}

function describeExit({ code, signal, reason }: Exit): string {
  const how =
    signal !== undefined
      ? `was killed by ${signal}`
      : code === undefined
        ? 'exited'
        : `exited with code ${code}`;
  return reason === undefined ? how : `${how}: ${reason}`;
}

/** Expects lines with secrets already redacted. */
export function withLastLines(text: string, lastLines: string): string {
  return lastLines === '' ? text : `${withoutPeriod(text)}; last output: ${lastLines}`;
}

/** For a log that already has these lines. */
export function withoutLastLines(text: string): string {
  const at = text.search(/[;.] last output: /i);
  return at === -1 ? text : `${text.slice(0, at)}.`;
}

export function withoutPeriod(text: string): string {
  return text.replace(/\.$/, '');
}

const processLimit = ({ pids }: Limits) => `its limit of ${pids} processes and threads`;

/** Messages of programs that reached a limit. All patterns must match the same line. */
const limitMessages: readonly [RegExp[], (limits: Limits) => string][] = [
  [[/(spawn|fork|clone|pthread_create)\b/i, /EAGAIN|temporarily unavailable|retry/i], processLimit],
  [[/(start|create) (a )?(new )?(native |OS )?thread/i], processLimit],
  [
    [/\bENOSPC\b|No space left on device/i],
    ({ diskBytes }) => `its limit of ${formatBytes(diskBytes)} of disk, or the end of its /tmp`,
  ],
  [
    [/\bENOMEM\b|Cannot allocate memory/i],
    ({ memoryBytes }) => `its limit of ${formatBytes(memoryBytes)} of memory`,
  ],
];

function reachedLimit(lastLines: string, limits: Limits): string | undefined {
  const lines = lastLines.split('\n');
  const found = limitMessages.find(([patterns]) =>
    lines.some((line) => patterns.every((pattern) => pattern.test(line))),
  );
  return found?.[1](limits);
}
