import type { Chunks } from './jsonrpc.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const NOTHING = Buffer.alloc(0);

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

/** Cuts a stream of bytes into lines, without joining the chunks of a long one. */
export class LineSplitter {
  private readonly handlers: LineHandlers;
  private readonly maxBytes: number;
  private pending: Buffer[] = [];
  private pendingBytes = 0;
  /** The edges of a line that is being thrown away. */
  private discarded: { head: Buffer; tail: Buffer } | undefined;

  constructor(maxBytes: number, handlers: LineHandlers) {
    this.maxBytes = maxBytes;
    this.handlers = handlers;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const newline = chunk.indexOf(NEWLINE, start);
      if (newline === -1) break;
      this.add(chunk.subarray(start, newline));
      this.finish();
      start = newline + 1;
    }
    if (start < chunk.length) this.add(start === 0 ? chunk : chunk.subarray(start));
  }

  /** The stream is over: what stands after the last line break is a line too. */
  end(): void {
    this.finish();
  }

  private add(part: Buffer): void {
    if (part.length === 0) return;
    if (this.discarded !== undefined) {
      this.discarded.tail = lastBytes(this.discarded.tail, part);
      return;
    }
    this.pending.push(part);
    this.pendingBytes += part.length;
    if (this.pendingBytes <= this.maxBytes) return;
    const head = firstBytes(this.pending);
    this.discarded = { head, tail: this.pending.reduce(lastBytes, NOTHING) };
    this.pending = [];
    this.pendingBytes = 0;
    this.handlers.tooLong(head);
  }

  private finish(): void {
    const line = this.pending;
    this.pendingBytes = 0;
    const { discarded } = this;
    if (discarded !== undefined) {
      this.discarded = undefined;
      this.handlers.skipped?.(discarded.head, discarded.tail);
      return;
    }
    if (line.length === 0) return;
    this.pending = [];
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

function lastBytes(before: Buffer, part: Buffer): Buffer {
  const bytes = part.length >= EDGE_BYTES ? part : Buffer.concat([before.subarray(-EDGE_BYTES), part]);
  return bytes.subarray(-EDGE_BYTES);
}
