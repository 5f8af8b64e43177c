import type { Readable, Writable } from 'node:stream';
import { SwitchboardError } from '../errors.ts';
import { findAnswerId } from '../protocol/answer.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { LineSplitter } from '../protocol/lines.ts';
import { withoutLineBreaks } from '../protocol/sse.ts';
import { type Receiver, tooLarge } from './channel.ts';

const NEWLINE = Buffer.from('\n');
/** Writes up to this size are copied together into one; larger ones go out as they are. */
const GATHER_BYTES = 64 * 1024;
/** Of a longer line nothing is told: secrets are masked later, and the half of one would not be known. */
export const MAX_LOG_LINE = 32 * 1024;

/** Messages as lines, written to one stream and read from another. */
export class LinePipe {
  private readonly input: Writable;
  private readonly output: Readable;
  private readonly maxBytes: number;
  private readonly receiver: Pick<Receiver, 'message' | 'failed' | 'log'>;
  private readonly lines: LineSplitter;
  private queue: Buffer[] = [];
  private queuedBytes = 0;
  private flushing = false;

  constructor(
    input: Writable,
    output: Readable,
    maxBytes: number,
    receiver: Pick<Receiver, 'message' | 'failed' | 'log'>,
  ) {
    this.input = input;
    this.output = output;
    this.maxBytes = maxBytes;
    this.receiver = receiver;
    this.lines = new LineSplitter(maxBytes, {
      line: (chunks) => this.receiveLine(chunks),
      tooLong: () => receiver.log(`stdout: a message over ${maxBytes} bytes is skipped`),
      skipped: (head, tail) => {
        const answer = findAnswerId([head, tail]);
        if (answer !== undefined) receiver.failed(answer.id, tooLarge(maxBytes), true);
      },
    });
    output.on('data', this.receive);
  }

  send(message: Buffer, request?: number): void {
    if (this.queuedBytes + this.input.writableLength > this.maxBytes) {
      const error = new SwitchboardError('server_unavailable', 'The server does not read its input.');
      if (request !== undefined) this.receiver.failed(request, error, false);
      return;
    }
    this.queue.push(withoutLineBreaks(message), NEWLINE);
    this.queuedBytes += message.length;
    if (this.flushing) return;
    this.flushing = true;
    // Calls that arrive together leave together: one write instead of many.
    setImmediate(() => this.flush());
  }

  /** What is left is a line too. */
  end(): void {
    this.lines.end();
  }

  /** Reads no more. The streams stay as they are. */
  leave(): void {
    this.output.off('data', this.receive);
  }

  private readonly receive = (chunk: Buffer): void => this.lines.push(chunk);

  /** Writes what waits to be written together with others. */
  flush(): void {
    const { queue, queuedBytes } = this;
    if (queue.length === 0) return;
    this.flushing = false;
    this.queue = [];
    this.queuedBytes = 0;
    if (this.input.destroyed) return;
    if (queuedBytes <= GATHER_BYTES) {
      this.input.write(Buffer.concat(queue));
      return;
    }
    this.input.cork();
    for (const part of queue) this.input.write(part);
    this.input.uncork();
  }

  private receiveLine(chunks: Chunks): void {
    const first = chunks[0]!;
    let at = 0;
    while (first[at] === 0x20 || first[at] === 0x09) at++;
    if (first[at] === 0x7b || first[at] === 0x5b) this.receiver.message(chunks);
    else this.receiver.log(`stdout: not a message, skipped: ${beginning(join(chunks))}`);
  }
}

/** More than the log shows, which cuts it when its secrets are masked. */
function beginning(bytes: Buffer): string {
  return bytes.toString('utf8', 0, MAX_LOG_LINE);
}
