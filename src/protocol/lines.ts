import { Gathered } from './gathered.ts';
import type { Chunks } from './jsonrpc.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export interface LineHandlers {
  /** Without its line break. Never empty. */
  line(chunks: Chunks): void;
  /** A line exceeded the limit and is discarded up to its end; `head` is its start. */
  tooLong(head: Buffer): void;
  /** A discarded line has ended; `head` and `tail` are its first and last bytes. */
  skipped?(head: Buffer, tail: Buffer): void;
}

/** How much of each end of a discarded line is kept. */
const EDGE_BYTES = 256;

/** Splits a byte stream into lines, without joining the chunks of long ones. */
export class LineSplitter {
  private readonly handlers: LineHandlers;
  private readonly maxBytes: number;
  private readonly pending = new Gathered();
  /** The number of line breaks so far. */
  breaks = 0;
  /** Both ends of the line that is being discarded. */
  private discarded: { head: Buffer; tail: LastBytes } | undefined;

  constructor(maxBytes: number, handlers: LineHandlers) {
    this.maxBytes = maxBytes;
    this.handlers = handlers;
  }

  /** Reads at most `most` lines from `start`, and returns the position after them. */
  push(chunk: Buffer, start = 0, most = Number.POSITIVE_INFINITY): number {
    let at = start;
    for (let count = 0; count < most; count++) {
      const newline = chunk.indexOf(NEWLINE, at);
      if (newline === -1) {
        if (at < chunk.length) this.add(at === 0 ? chunk : chunk.subarray(at));
        return chunk.length;
      }
      this.breaks++;
      if (newline > at) this.add(chunk.subarray(at, newline));
      this.finish();
      at = newline + 1;
    }
    return at;
  }

  /** The stream ended, and with it the last line. */
  end(): void {
    this.finish();
  }

  private add(part: Buffer): void {
    if (this.discarded !== undefined) {
      this.discarded.tail.add(part);
      return;
    }
    this.pending.add(part);
    if (this.pending.length <= this.maxBytes) return;
    const parts = this.pending.take();
    const tail = new LastBytes();
    for (const each of parts) tail.add(each);
    this.discarded = { head: firstBytes(parts), tail };
    this.handlers.tooLong(this.discarded.head);
  }

  private finish(): void {
    const { discarded } = this;
    if (discarded !== undefined) {
      this.discarded = undefined;
      this.handlers.skipped?.(discarded.head, discarded.tail.bytes());
      return;
    }
    if (this.pending.length === 0) return;
    const line = this.pending.take();
    const last = line.length - 1;
    const tail = line[last]!;
    if (tail[tail.length - 1] === CARRIAGE_RETURN) {
      if (tail.length > 1) line[last] = tail.subarray(0, -1);
      else line.pop();
    }
    if (line.length > 0) this.handlers.line(line);
  }
}

function firstBytes(parts: Buffer[]): Buffer {
  const enough: Buffer[] = [];
  let length = 0;
  for (const part of parts) {
    if (length >= EDGE_BYTES) break;
    enough.push(part);
    length += part.length;
  }
  return Buffer.concat(enough, Math.min(length, EDGE_BYTES));
}

/** The end of a discarded line. Moves each byte at most twice, however small the parts are. */
class LastBytes {
  private readonly kept = Buffer.allocUnsafe(2 * EDGE_BYTES);
  private filled = 0;

  add(part: Buffer): void {
    const end = part.subarray(-EDGE_BYTES);
    if (this.filled + end.length > this.kept.length) {
      this.kept.copyWithin(0, this.filled - EDGE_BYTES, this.filled);
      this.filled = EDGE_BYTES;
    }
    this.filled += end.copy(this.kept, this.filled);
  }

  bytes(): Buffer {
    return this.kept.subarray(Math.max(0, this.filled - EDGE_BYTES), this.filled);
  }
}
