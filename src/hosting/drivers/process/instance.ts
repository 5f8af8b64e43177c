import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { LineReader } from '../../../channels/line-pipe.ts';
import { DEADLINES, endGroup } from '../../../channels/process-group.ts';
import type { ChildRecord } from '../../../channels/stdio.ts';
import type { Exit, Instance, ResourceUsage } from '../../driver.ts';
import { logLines } from '../../log.ts';
import { UsageMeter } from './usage-meter.ts';

/** For the rest of the output after an exit. Another process may keep the pipes open. */
const DRAIN_MS = 1_000;

export class ProcessInstance implements Instance {
  readonly id: string;
  readonly startedAt = new Date();
  readonly stdio: { input: Writable; output: Readable } | undefined;
  readonly url: string | undefined;
  readonly exited: Promise<Exit>;
  private readonly group: number;
  private readonly record: ChildRecord;
  private readonly meter: UsageMeter;
  private ending: Promise<void> | undefined;

  constructor(
    child: ChildProcess & { pid: number },
    { hasStdio, url }: { hasStdio: boolean; url: string | undefined },
    record: ChildRecord,
    log: (line: string) => void,
  ) {
    this.group = child.pid;
    this.id = String(child.pid);
    this.url = url;
    this.record = record;
    this.meter = new UsageMeter(child.pid);
    record.started(child.pid);
    const readings = [readLines(child.stderr!, log)];
    if (hasStdio) {
      const output = new PassThrough();
      this.stdio = { input: child.stdin!, output };
      // The exit is reported elsewhere.
      child.stdin!.on('error', () => {});
      readings.push(readBytes(child, output));
    } else {
      readings.push(readLines(child.stdout!, log));
    }
    this.exited = this.untilExited(child, readings);
  }

  async stop(graceMs: number): Promise<void> {
    this.ending ??= this.untilGone(graceMs);
    await Promise.all([this.ending, this.exited]);
  }

  usage(): Promise<ResourceUsage> {
    return this.meter.read();
  }

  private async untilExited(child: ChildProcess, readings: Promise<void>[]): Promise<Exit> {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    // The rest of its process group must exit too.
    this.ending ??= this.untilGone(DEADLINES.killAfterMs);
    await Promise.race([Promise.all(readings), delay(DRAIN_MS, undefined, { ref: false })]);
    child.stdout?.destroy();
    child.stderr?.destroy();
    await Promise.all(readings);
    return { code: code ?? undefined, signal: signal ?? undefined, reason: undefined, isLost: false };
  }

  private async untilGone(graceMs: number): Promise<void> {
    await endGroup(this.group, graceMs);
    this.record.ended(this.group);
  }
}

async function readLines(stream: Readable, log: (line: string) => void): Promise<void> {
  const reader = new LineReader(stream, logLines(log));
  await untilClosed(stream);
  reader.end();
}

/** Applies backpressure while the child runs. */
async function readBytes(child: ChildProcess, output: PassThrough): Promise<void> {
  const stdout = child.stdout!;
  stdout.pipe(output, { end: false });
  // The rest is at most one pipe buffer, so it can be kept for slow readers.
  child.once('exit', () => {
    stdout.unpipe(output);
    stdout.on('data', (chunk: Buffer) => output.write(chunk));
    stdout.resume();
  });
  await untilClosed(stdout);
  output.end();
}

async function untilClosed(stream: Readable): Promise<void> {
  await finished(stream).catch(() => {});
}
