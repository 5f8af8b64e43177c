import type { Readable, Writable } from 'node:stream';
import { SwitchboardError } from '../errors.ts';
import { Gathered } from '../protocol/gathered.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { LineSplitter } from '../protocol/lines.ts';
import { findResponseId } from '../protocol/response.ts';
import { withoutLineBreaks } from '../protocol/sse.ts';
import type { Receiver } from './channel.ts';
import { tooLarge } from './errors.ts';

const NEWLINE = Buffer.from('\n');
/** Longer lines are not logged: a cut before masking could leave half a secret. */
export const MAX_LOG_LINE = 32 * 1024;
/** How many lines of a stream are processed per turn of the event loop. */
export const LINES_PER_TURN = 500;

/** Messages as lines, written to one stream and read from another. */
export class LinePipe {
  private readonly input: Writable;
  private readonly maxBytes: number;
  private readonly receiver: Pick<Receiver, 'onMessage' | 'onRequestError' | 'log'>;
  private readonly lines: LineReader;
  private readonly queue = new Gathered();
  private flushing = false;

  constructor(input: Writable, output: Readable, maxBytes: number, receiver: LinePipe['receiver']) {
    this.input = input;
    this.maxBytes = maxBytes;
    this.receiver = receiver;
    const lines = new LineSplitter(maxBytes, {
      line: (chunks) => this.receiveLine(chunks),
      tooLong: () => receiver.log(`stdout: skipped a message over ${maxBytes} bytes`),
      skipped: (head, tail) => {
        const response = findResponseId([head, tail]);
        if (response !== undefined) receiver.onRequestError(response.id, tooLarge(maxBytes), true);
      },
    });
    this.lines = new LineReader(output, lines);
  }

  send(message: Chunks, request?: number): void {
    if (this.queue.length + this.input.writableLength > this.maxBytes) {
      const error = new SwitchboardError('server_unavailable', 'The server does not read its stdin.');
      if (request !== undefined) this.receiver.onRequestError(request, error, false);
      return;
    }
    for (const chunk of message) this.queue.add(withoutLineBreaks(chunk));
    this.queue.add(NEWLINE);
    if (this.flushing) return;
    this.flushing = true;
    // Messages of one turn share one write.
    setImmediate(() => this.flushWhenDrained());
  }

  end(): void {
    this.lines.end();
  }

  /** Stops reading and leaves the streams open. */
  detach(): void {
    this.lines.detach();
  }

  /** Messages for a slow reader are gathered here: many queued writes cost more. */
  private flushWhenDrained(): void {
    if (this.input.writableNeedDrain) this.input.once('drain', () => this.flush());
    else this.flush();
  }

  flush(): void {
    this.flushing = false;
    const parts = this.queue.take();
    if (parts.length === 0 || this.input.destroyed) return;
    if (parts.length === 1) {
      this.input.write(parts[0]!);
      return;
    }
    this.input.cork();
    for (const part of parts) this.input.write(part);
    this.input.uncork();
  }

  private receiveLine(chunks: Chunks): void {
    const first = chunks[0]!;
    let at = 0;
    while (first[at] === 0x20 || first[at] === 0x09) at++;
    if (first[at] === 0x7b || first[at] === 0x5b) this.receiver.onMessage(chunks);
    // The log cuts it, after masking.
    else
      this.receiver.log(
        `stdout: skipped a line that is not JSON-RPC: ${join(chunks).toString('utf8', 0, MAX_LOG_LINE)}`,
      );
  }
}

/** Reads the lines of a stream. Pauses a stream with many lines, so that other work gets its turn and the writer waits. */
export class LineReader {
  private readonly stream: Readable;
  private readonly lines: LineSplitter;
  private left = LINES_PER_TURN;
  /** Chunks that were read but not processed; the first one is processed up to `at`. */
  private unread: Buffer[] | undefined;
  private at = 0;
  private isOver = false;

  constructor(stream: Readable, lines: LineSplitter) {
    this.stream = stream;
    this.lines = lines;
    stream.on('data', this.take);
  }

  /** The stream ended: processes what is left of it. */
  end(): void {
    for (const chunk of this.unread ?? []) {
      this.lines.push(chunk, this.at);
      this.at = 0;
    }
    this.unread = undefined;
    this.isOver = true;
    this.lines.end();
  }

  /** Stops reading and leaves the stream open. */
  detach(): void {
    this.unread = undefined;
    this.isOver = true;
    this.stream.off('data', this.take);
  }

  private readonly take = (chunk: Buffer): void => {
    // Node resumes a paused stream when its process exits.
    if (this.unread !== undefined) {
      this.unread.push(chunk);
      return;
    }
    const at = this.push(chunk, 0);
    // The receiver of a line may have detached.
    if (this.left === 0 && !this.isOver) this.pause([chunk], at);
  };

  /** Processes as many lines as are left in this turn, and returns the position after them. */
  private push(chunk: Buffer, start: number): number {
    const before = this.lines.breaks;
    const at = this.lines.push(chunk, start, this.left);
    this.left -= this.lines.breaks - before;
    return at;
  }

  private pause(unread: Buffer[], at: number): void {
    this.unread = unread;
    this.at = at;
    this.stream.pause();
    setImmediate(() => {
      if (!this.isOver) this.resume(unread);
    });
  }

  private resume(unread: Buffer[]): void {
    this.left = LINES_PER_TURN;
    for (let chunk = unread.shift(); chunk !== undefined; chunk = unread.shift()) {
      const at = this.push(chunk, this.at);
      if (this.isOver) return;
      this.at = 0;
      if (this.left === 0) {
        unread.unshift(chunk);
        this.pause(unread, at);
        return;
      }
    }
    this.unread = undefined;
    this.stream.resume();
  }
}
