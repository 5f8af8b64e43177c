import type { Readable, Writable } from 'node:stream';
import { SwitchboardError } from '../errors.ts';
import { Gathered } from '../protocol/gathered.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { LineSplitter } from '../protocol/lines.ts';
import { findResponseId } from '../protocol/response.ts';
import { withoutLineBreaks } from '../protocol/sse.ts';
import { type Receiver, tooLarge } from './channel.ts';

const NEWLINE = Buffer.from('\n');
/** Of a longer line nothing is told: secrets are masked later, and the half of one would not be known. */
export const MAX_LOG_LINE = 32 * 1024;

/** Messages as lines, written to one stream and read from another. */
export class LinePipe {
  private readonly input: Writable;
  private readonly maxBytes: number;
  private readonly receiver: Pick<Receiver, 'onMessage' | 'onRequestError' | 'log'>;
  private readonly lines: LineReader;
  private readonly queue = new Gathered();
  private flushing = false;

  constructor(
    input: Writable,
    output: Readable,
    maxBytes: number,
    receiver: Pick<Receiver, 'onMessage' | 'onRequestError' | 'log'>,
  ) {
    this.input = input;
    this.maxBytes = maxBytes;
    this.receiver = receiver;
    const lines = new LineSplitter(maxBytes, {
      line: (chunks) => this.receiveLine(chunks),
      tooLong: () => receiver.log(`stdout: a message over ${maxBytes} bytes is skipped`),
      skipped: (head, tail) => {
        const answer = findResponseId([head, tail]);
        if (answer !== undefined) receiver.onRequestError(answer.id, tooLarge(maxBytes), true);
      },
    });
    this.lines = new LineReader(output, lines);
  }

  send(message: Chunks, request?: number): void {
    if (this.queue.length + this.input.writableLength > this.maxBytes) {
      const error = new SwitchboardError('server_unavailable', 'The server does not read its input.');
      if (request !== undefined) this.receiver.onRequestError(request, error, false);
      return;
    }
    for (const chunk of message) this.queue.add(withoutLineBreaks(chunk));
    this.queue.add(NEWLINE);
    if (this.flushing) return;
    this.flushing = true;
    // Calls that arrive together leave together: one write instead of many.
    setImmediate(() => this.flushWhenTaken());
  }

  /** What is left is a line too. */
  end(): void {
    this.lines.end();
  }

  /** Reads no more. The streams stay as they are. */
  leave(): void {
    this.lines.leave();
  }

  /** Where the server is slow to read, what it has not taken is gathered here: writes that wait one by one cost more. */
  private flushWhenTaken(): void {
    if (this.input.writableNeedDrain) this.input.once('drain', () => this.flush());
    else this.flush();
  }

  /** Writes what waits to be written together with others. */
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
    else this.receiver.log(`stdout: not a message, skipped: ${beginning(join(chunks))}`);
  }
}

/** More than the log shows, which cuts it when its secrets are masked. */
function beginning(bytes: Buffer): string {
  return bytes.toString('utf8', 0, MAX_LOG_LINE);
}

/** So many lines of a stream are dealt with before others get their turn. */
export const LINES_PER_TURN = 500;

/**
 * Has the lines of a stream dealt with as they come. One that has a great many of them, whatever they are, is not read
 * while others have their turn, so that its writer has to wait.
 */
export class LineReader {
  private readonly stream: Readable;
  private readonly lines: LineSplitter;
  private left = LINES_PER_TURN;
  /** What has come and is not dealt with; the first one from there on. */
  private unread: Buffer[] | undefined;
  private at = 0;
  private isOver = false;

  constructor(stream: Readable, lines: LineSplitter) {
    this.stream = stream;
    this.lines = lines;
    stream.on('data', this.take);
  }

  /** The stream is over: what is left of it is dealt with now. */
  end(): void {
    for (const chunk of this.unread ?? []) {
      this.lines.push(chunk, this.at);
      this.at = 0;
    }
    this.unread = undefined;
    this.isOver = true;
    this.lines.end();
  }

  /** Reads no more. The stream stays as it is. */
  leave(): void {
    this.unread = undefined;
    this.isOver = true;
    this.stream.off('data', this.take);
  }

  private readonly take = (chunk: Buffer): void => {
    // Node itself has a stream flow again when its process ends.
    if (this.unread !== undefined) {
      this.unread.push(chunk);
      return;
    }
    const at = this.push(chunk, 0);
    // Whoever hears of a line may have left it.
    if (this.left === 0 && !this.isOver) this.rest([chunk], at);
  };

  /** Takes as many lines as are left in this turn; gives the place behind them. */
  private push(chunk: Buffer, start: number): number {
    const before = this.lines.breaks;
    const at = this.lines.push(chunk, start, this.left);
    this.left -= this.lines.breaks - before;
    return at;
  }

  private rest(unread: Buffer[], at: number): void {
    this.unread = unread;
    this.at = at;
    this.stream.pause();
    setImmediate(() => {
      if (!this.isOver) this.goOn(unread);
    });
  }

  private goOn(unread: Buffer[]): void {
    this.left = LINES_PER_TURN;
    for (let chunk = unread.shift(); chunk !== undefined; chunk = unread.shift()) {
      const at = this.push(chunk, this.at);
      if (this.isOver) return;
      this.at = 0;
      if (this.left === 0) {
        unread.unshift(chunk);
        this.rest(unread, at);
        return;
      }
    }
    this.unread = undefined;
    this.stream.resume();
  }
}
