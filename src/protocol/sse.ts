import type { Chunks } from './jsonrpc.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const lineFeed = Buffer.from('\n');

/** One event of a text/event-stream. */
export interface SseEvent {
  /** The event's type; `message` where none is given. */
  type: string;
  /** The last id seen on the stream, as the specification keeps it. */
  id: string | undefined;
  data: Chunks;
}

export interface SseHandlers {
  event(event: SseEvent): void;
  retry?(milliseconds: number): void;
  /** An event grew past the limit and is thrown away; `head` is how its data began. */
  tooLarge(head: Buffer): void;
}

/** Reads a text/event-stream from bytes split anywhere. */
export class SseParser {
  private readonly handlers: SseHandlers;
  private readonly maxBytes: number;
  private line: Buffer[] = [];
  private lineBytes = 0;
  private skipNewline = false;
  private atStart = true;
  private type = '';
  private data: Buffer[] = [];
  private dataBytes = 0;
  private hasData = false;
  private discarding = false;
  /** The id of the last event that was complete: where to resume. */
  lastEventId: string | undefined;
  private nextId: string | undefined;

  constructor(maxBytes: number, handlers: SseHandlers) {
    this.maxBytes = maxBytes;
    this.handlers = handlers;
  }

  push(chunk: Buffer): void {
    let start = 0;
    if (this.skipNewline && chunk.length > 0) {
      if (chunk[0] === NEWLINE) start = 1;
      this.skipNewline = false;
    }
    let carriageReturn = chunk.indexOf(CARRIAGE_RETURN, start);
    while (start < chunk.length) {
      const newline = chunk.indexOf(NEWLINE, start);
      if (carriageReturn !== -1 && carriageReturn < start)
        carriageReturn = chunk.indexOf(CARRIAGE_RETURN, start);
      const stop =
        carriageReturn === -1 ? newline : newline === -1 ? carriageReturn : Math.min(newline, carriageReturn);
      if (stop === -1) {
        this.add(chunk.subarray(start));
        return;
      }
      if (stop > start) this.add(chunk.subarray(start, stop));
      this.endLine();
      start = stop + 1;
      if (chunk[stop] === CARRIAGE_RETURN) {
        if (start === chunk.length) this.skipNewline = true;
        else if (chunk[start] === NEWLINE) start++;
      }
    }
  }

  private add(part: Buffer): void {
    this.lineBytes += part.length;
    if (this.dataBytes + this.lineBytes > this.maxBytes) {
      if (!this.discarding) {
        this.discarding = true;
        this.handlers.tooLarge(this.data[0] ?? this.line[0] ?? part);
      }
      this.line = [];
      this.data = [];
      return;
    }
    this.line.push(part);
  }

  private endLine(): void {
    let line = this.line;
    const length = this.lineBytes;
    const isFirst = this.atStart;
    this.line = [];
    this.lineBytes = 0;
    this.atStart = false;
    if (length === 0) {
      this.endEvent();
      return;
    }
    if (this.discarding) return;
    if (isFirst) line = withoutByteOrderMark(line);
    this.field(line);
  }

  private field(line: Buffer[]): void {
    // The name of a field may be split over chunks only where a line is; joining a short head is cheap.
    const head = line[0]!.length >= 7 || line.length === 1 ? line[0]! : Buffer.concat(line);
    const rest = head === line[0] ? line.slice(1) : [];
    const colon = head.subarray(0, 16).indexOf(0x3a);
    if (colon === 0) return;
    const name = head.toString('latin1', 0, colon === -1 ? head.length : colon);
    let valueStart = colon === -1 ? head.length : colon + 1;
    if (colon !== -1 && head[valueStart] === 0x20) valueStart++;
    const value = head.subarray(valueStart);
    switch (name) {
      case 'data':
        if (this.hasData) {
          this.data.push(lineFeed);
          this.dataBytes += lineFeed.length;
        }
        this.hasData = true;
        for (const part of [value, ...rest]) {
          if (part.length > 0) this.data.push(part);
          this.dataBytes += part.length;
        }
        return;
      case 'event':
        this.type = Buffer.concat([value, ...rest]).toString();
        return;
      case 'id': {
        const id = Buffer.concat([value, ...rest]).toString();
        if (!id.includes('\0')) this.nextId = id;
        return;
      }
      case 'retry': {
        const text = Buffer.concat([value, ...rest]).toString();
        if (/^\d{1,9}$/.test(text)) this.handlers.retry?.(Number(text));
        return;
      }
    }
  }

  private endEvent(): void {
    const { data, hasData, discarding } = this;
    const type = this.type || 'message';
    this.type = '';
    this.data = [];
    this.dataBytes = 0;
    this.hasData = false;
    this.discarding = false;
    if (this.nextId !== undefined) this.lastEventId = this.nextId;
    if (hasData && !discarding) this.handlers.event({ type, id: this.lastEventId, data });
  }
}

const eventOpen = Buffer.from('event: message\n');
const dataOpen = Buffer.from('data: ');
const eventClose = Buffer.from('\n\n');

/** One message as an event. A JSON text may be pretty-printed: its line breaks are white space, and become that. */
export function sseMessage(message: Chunks, id: string | undefined): Buffer[] {
  const lines = message.map(withoutLineBreaks);
  return id === undefined
    ? [eventOpen, dataOpen, ...lines, eventClose]
    : [Buffer.from(`event: message\nid: ${id}\ndata: `), ...lines, eventClose];
}

/** An event with an id and nothing else: from here a client can resume before the first message came. */
export function ssePrimer(id: string, retryMs: number): Buffer {
  return Buffer.from(`id: ${id}\nretry: ${retryMs}\ndata: \n\n`);
}

export const sseKeepAlive = Buffer.from(': keep-alive\n\n');

/** JSON has raw line breaks only as white space between tokens, so blanks may stand in their place. */
export function withoutLineBreaks(chunk: Buffer): Buffer {
  if (chunk.indexOf(NEWLINE) === -1 && chunk.indexOf(CARRIAGE_RETURN) === -1) return chunk;
  const copy = Buffer.from(chunk);
  for (let at = 0; at < copy.length; at++) {
    if (copy[at] === NEWLINE || copy[at] === CARRIAGE_RETURN) copy[at] = 0x20;
  }
  return copy;
}

function withoutByteOrderMark(line: Buffer[]): Buffer[] {
  const whole = line[0]!.length >= 3 ? line[0]! : Buffer.concat(line);
  if (whole[0] !== 0xef || whole[1] !== 0xbb || whole[2] !== 0xbf) return line;
  const rest = whole === line[0] ? line.slice(1) : [];
  return [whole.subarray(3), ...rest];
}
