import { Gathered } from './gathered.ts';
import type { Chunks } from './jsonrpc.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export interface LineHandlers {
  /** One line without its line break. Never empty. */
  line(chunks: Chunks): void;
  /** A line grew past the limit and is thrown away up to its end; `head` is how it began. */
  tooLong(head: Buffer): void;
  /** Such a line is over; `head` and `tail` are its first and its last bytes. */
  skipped?(head: Buffer, tail: Buffer): void;
}

/** How much of a line's beginning and end is kept of one that is thrown away. */
const EDGE_BYTES = 256;

/** Cuts a stream of bytes into lines, without joining the large chunks of a long one. */
export class LineSplitter {
  private readonly handlers: LineHandlers;
  private readonly maxBytes: number;
  private readonly pending = new Gathered();
  /** How many line breaks have come. */
  breaks = 0;
  /** The edges of a line that is being thrown away. */
  private discarded: { head: Buffer; tail: LastBytes } | undefined;

  constructor(maxBytes: number, handlers: LineHandlers) {
    this.maxBytes = maxBytes;
    this.handlers = handlers;
  }

  /** Takes so many lines of a chunk at the most, from there on; gives the place of what is left. */
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

  /** The stream is over: what stands after the last line break is a line too. */
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

/** The end of what is thrown away. Each byte is moved at most twice, however small the parts are. */
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
