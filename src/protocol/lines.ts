import type { Chunks } from './jsonrpc.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export interface LineHandlers {
  /** One line without its line break. Never empty. */
  line(chunks: Chunks): void;
  /** A line grew past the limit and is thrown away up to its end; `head` is how it began. */
  tooLong(head: Buffer): void;
}

/** Cuts a stream of bytes into lines, without joining the chunks of a long one. */
export class LineSplitter {
  private readonly handlers: LineHandlers;
  private readonly maxBytes: number;
  private pending: Buffer[] = [];
  private pendingBytes = 0;
  private discarding = false;

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
    if (this.discarding || part.length === 0) return;
    this.pending.push(part);
    this.pendingBytes += part.length;
    if (this.pendingBytes <= this.maxBytes) return;
    const head = this.pending[0]!;
    this.discarding = true;
    this.pending = [];
    this.pendingBytes = 0;
    this.handlers.tooLong(head);
  }

  private finish(): void {
    const line = this.pending;
    this.pendingBytes = 0;
    if (this.discarding) {
      this.discarding = false;
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
