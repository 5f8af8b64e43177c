import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { LineReader } from '../../../channels/line-reader.ts';
import { DEADLINES, endGroup } from '../../../channels/process-group.ts';
import type { ChildRecord } from '../../../channels/stdio.ts';
import type { Exit, Instance, Usage } from '../../driver.ts';
import { logLines } from '../log-lines.ts';
import { UsageMeter } from './usage-meter.ts';

/** What a process wrote before it ended is read by then, also where another one keeps its pipes open. */
const DRAIN_MS = 1_000;

/** A child that leads a process group of its own, and all that it starts. */
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
      // Nobody has to care whether it still reads: its end is told by itself.
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

  usage(): Promise<Usage> {
    return this.meter.read();
  }

  private async untilExited(child: ChildProcess, readings: Promise<void>[]): Promise<Exit> {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    // Whatever it started and left behind goes too.
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

/** Settles when the stream is over. */
async function readLines(stream: Readable, log: (line: string) => void): Promise<void> {
  const reader = new LineReader(stream, logLines(log));
  await untilOver(stream);
  reader.end();
}

/** Settles when its stdout is over, and so is `output`. While it runs, it waits for whoever reads. */
async function readBytes(child: ChildProcess, output: PassThrough): Promise<void> {
  const stdout = child.stdout!;
  stdout.pipe(output, { end: false });
  // What it left, which is no more than a pipe holds, is for slow readers too.
  child.once('exit', () => {
    stdout.unpipe(output);
    stdout.on('data', (chunk: Buffer) => output.write(chunk));
    stdout.resume();
  });
  await untilOver(stdout);
  output.end();
}

async function untilOver(stream: Readable): Promise<void> {
  await finished(stream).catch(() => {});
}
