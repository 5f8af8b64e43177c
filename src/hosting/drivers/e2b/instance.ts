import { once } from 'node:events';
import { PassThrough, type Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sandbox } from 'e2b';
import type { Exit, Instance, InstanceEvents, Usage } from '../../driver.ts';
import { logLines } from '../log-lines.ts';
import type { LoopbackPort } from './loopback-port.ts';
import type { SandboxProcess } from './sandbox-process.ts';
import { explain, isNotFound } from './sdk.ts';
import { UsageMeter } from './usage-meter.ts';

/** E2B ends a sandbox by itself after that time, so that none is paid for long when nobody is there to end it. */
export const LEASE_MS = 10 * 60_000;
const EXTEND_EVERY_MS = 3 * 60_000;
/** Nobody waits longer for an answer of E2B when something ends. */
const REQUEST_TIMEOUT_MS = 5_000;

export interface Parts {
  sandbox: Sandbox;
  process: SandboxProcess;
  port: LoopbackPort | undefined;
  startedAt: Date;
  hasStdio: boolean;
  events: InstanceEvents;
}

/** A sandbox, and the one process in it that is the server. */
export class E2bInstance implements Instance {
  readonly id: string;
  readonly startedAt: Date;
  readonly stdio: { input: Writable; output: Readable } | undefined;
  readonly url: string | undefined;
  readonly exited: Promise<Exit>;
  private readonly parts: Parts;
  private readonly meter: UsageMeter;
  private readonly lease: NodeJS.Timeout;
  private isReleased = false;
  private removal: Promise<void> | undefined;

  constructor(parts: Parts) {
    const { sandbox, process, port, startedAt, hasStdio, events } = parts;
    this.parts = parts;
    this.id = sandbox.sandboxId;
    this.startedAt = startedAt;
    this.url = port?.url;
    this.meter = new UsageMeter(sandbox);
    this.lease = setInterval(() => this.extend(), EXTEND_EVERY_MS).unref();
    const output = new PassThrough();
    const lines = { stdout: logLines(events.log), stderr: logLines(events.log) };
    if (hasStdio) this.stdio = { input: inputOf(process), output };
    const reading = process.read({
      async stdout(bytes, left) {
        if (!hasStdio) lines.stdout.push(bytes);
        else if (!output.write(bytes)) await once(output, 'drain', { signal: left });
      },
      stderr: (bytes) => lines.stderr.push(bytes),
    });
    this.exited = this.untilExited(reading, () => {
      lines.stdout.end();
      lines.stderr.end();
      output.end();
      this.stdio?.input.destroy();
    });
  }

  async stop(graceMs: number): Promise<void> {
    if (this.removal === undefined && graceMs > 0) {
      const grace = new AbortController();
      const timeout = delay(graceMs, undefined, { signal: grace.signal }).catch(() => {});
      // Where it cannot be told, it goes with its sandbox.
      const told = this.parts.process.terminate().then(
        () => timeout,
        () => {},
      );
      await Promise.race([this.exited, told, timeout]);
      grace.abort();
    }
    await this.remove();
    await this.exited;
  }

  usage(): Promise<Usage> {
    return this.meter.read();
  }

  release(): void {
    this.isReleased = true;
    this.leave();
  }

  private async untilExited(reading: Promise<Exit>, close: () => void): Promise<Exit> {
    const exit = await reading.catch((error) => this.whyCut(error));
    close();
    // What was let go of runs on, for somebody else.
    if (this.isReleased) return new Promise(() => {});
    this.leave();
    if (!exit.isLost) this.remove();
    return exit;
  }

  /** The stream is over, and nobody said that the process has ended. */
  private async whyCut(cut: unknown): Promise<Exit> {
    if (this.isReleased || this.removal !== undefined) return killed(undefined);
    try {
      await this.parts.sandbox.getInfo({ requestTimeoutMs: REQUEST_TIMEOUT_MS });
      return lost(`the connection to its sandbox broke: ${explain(cut, 'keep it').message}`);
    } catch (error) {
      if (!isNotFound(error)) return lost(explain(error, 'say whether its sandbox is still there').message);
      return killed(
        'its sandbox is gone: somebody else ended it, or it had run as long as the plan at E2B allows',
      );
    }
  }

  /** Ends the sandbox, with all that is in it. */
  private remove(): Promise<void> {
    this.removal ??= this.kill();
    return this.removal;
  }

  private async kill(): Promise<void> {
    const { sandbox, events } = this.parts;
    try {
      await sandbox.kill({ requestTimeoutMs: REQUEST_TIMEOUT_MS });
    } catch (error) {
      const minutes = LEASE_MS / 60_000;
      const { message } = explain(error, `end the sandbox ${this.id}`);
      events.log(`${message} The sandbox ends by itself within ${minutes} minutes.`);
    }
    this.leave();
  }

  private async extend(): Promise<void> {
    try {
      await this.parts.sandbox.setTimeout(LEASE_MS);
    } catch (error) {
      // Of one that is gone the stream tells.
      if (!isNotFound(error)) this.parts.events.log(explain(error, 'keep its sandbox').message);
    }
  }

  private leave(): void {
    clearInterval(this.lease);
    this.parts.port?.close();
    this.parts.process.leave();
  }
}

function inputOf(process: SandboxProcess): Writable {
  const input = new Writable({
    writev(chunks, done) {
      const bytes = Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer));
      process.write(bytes).then(() => done(), done);
    },
    final(done) {
      // One that is gone, or too old to be told, needs not to know.
      process.closeInput().then(
        () => done(),
        () => done(),
      );
    },
  });
  // Nobody has to care whether it still reads: its end is told by itself.
  input.on('error', () => {});
  return input;
}

function killed(reason: string | undefined): Exit {
  return { code: undefined, signal: 'SIGKILL', reason, isLost: false };
}

function lost(reason: string): Exit {
  return { code: undefined, signal: undefined, reason, isLost: true };
}
