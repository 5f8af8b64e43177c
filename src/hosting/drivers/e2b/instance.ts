import { once } from 'node:events';
import { PassThrough, type Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sandbox } from 'e2b';
import type { Exit, Instance, InstanceEvents, InstanceSpec, ResourceUsage } from '../../driver.ts';
import { portInUse } from '../../driver.ts';
import { logLines } from '../../log.ts';
import { type LoopbackPort, openLoopbackPort } from './loopback-port.ts';
import type { SandboxProcess } from './sandbox-process.ts';
import { explain, isNotFound } from './sdk.ts';
import { UsageMeter } from './usage-meter.ts';

/** E2B kills a sandbox after this time, so that none costs money for long if Switchboard is gone. */
export const LEASE_MS = 10 * 60_000;
const EXTEND_EVERY_MS = 3 * 60_000;
const REQUEST_TIMEOUT_MS = 5_000;

interface Parts {
  sandbox: Sandbox;
  process: SandboxProcess;
  port: LoopbackPort | undefined;
  startedAt: Date;
  hasStdio: boolean;
  events: InstanceEvents;
}

export async function instanceOf(
  sandbox: Sandbox,
  process: SandboxProcess,
  { spec, events, startedAt }: { spec: InstanceSpec; events: InstanceEvents; startedAt: Date },
): Promise<Instance> {
  const port = spec.port === undefined ? undefined : await publish(sandbox, spec.port, spec);
  return new E2bInstance({ sandbox, process, port, startedAt, hasStdio: spec.hasStdio, events });
}

async function publish(
  sandbox: Sandbox,
  port: number,
  { name, hostPort, formerHostPort }: InstanceSpec,
): Promise<LoopbackPort> {
  const token = sandbox.trafficAccessToken;
  const target = {
    // A self-hosted E2B may use one address for all sandboxes, and select one by these headers.
    url: process.env.E2B_SANDBOX_URL || `https://${sandbox.getHost(port)}`,
    headers: {
      'E2b-Sandbox-Id': sandbox.sandboxId,
      'E2b-Sandbox-Port': String(port),
      ...(token === undefined ? {} : { 'e2b-traffic-access-token': token }),
    },
  };
  if (hostPort !== undefined)
    return openLoopbackPort(target, hostPort).catch(() => Promise.reject(portInUse(name, hostPort)));
  return openLoopbackPort(target, formerHostPort).catch(() => openLoopbackPort(target));
}

/** A sandbox, and the server as a process in it. */
class E2bInstance implements Instance {
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
      // If that fails, the process ends with its sandbox.
      const terminated = this.parts.process.terminate().then(
        () => timeout,
        () => {},
      );
      await Promise.race([this.exited, terminated, timeout]);
      grace.abort();
    }
    await this.remove();
    await this.exited;
  }

  usage(): Promise<ResourceUsage> {
    return this.meter.read();
  }

  release(): void {
    this.isReleased = true;
    this.leave();
  }

  private async untilExited(reading: Promise<Exit>, close: () => void): Promise<Exit> {
    const exit = await reading.catch((error) => this.exitOfBrokenStream(error));
    close();
    // A released instance keeps running.
    if (this.isReleased) return new Promise(() => {});
    this.leave();
    if (!exit.isLost) this.remove();
    return exit;
  }

  private async exitOfBrokenStream(cut: unknown): Promise<Exit> {
    if (this.isReleased || this.removal !== undefined) return killed(undefined);
    try {
      await this.parts.sandbox.getInfo({ requestTimeoutMs: REQUEST_TIMEOUT_MS });
      return lost(`the connection to its sandbox was lost: ${explain(cut, 'keep it').message}`);
    } catch (error) {
      if (!isNotFound(error)) return lost(explain(error, 'report the state of its sandbox').message);
      return killed(
        'its sandbox no longer exists: it was killed at E2B, or reached the maximum run time of the E2B plan',
      );
    }
  }

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
      const { message } = explain(error, `kill the sandbox ${this.id}`);
      events.log(`${message} E2B kills it within ${minutes} minutes.`);
    }
    this.leave();
  }

  private async extend(): Promise<void> {
    try {
      await this.parts.sandbox.setTimeout(LEASE_MS);
    } catch (error) {
      // If the sandbox is gone, the stream ends too.
      if (!isNotFound(error))
        this.parts.events.log(explain(error, 'extend the lease of its sandbox').message);
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
      // The process may be gone, or its sandbox too old to support this.
      process.closeInput().then(
        () => done(),
        () => done(),
      );
    },
  });
  // The exit is reported elsewhere.
  input.on('error', () => {});
  return input;
}

function killed(reason: string | undefined): Exit {
  return { code: undefined, signal: 'SIGKILL', reason, isLost: false };
}

function lost(reason: string): Exit {
  return { code: undefined, signal: undefined, reason, isLost: true };
}
