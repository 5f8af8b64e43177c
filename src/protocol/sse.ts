import { Gathered } from './gathered.ts';
import { type Chunks, join } from './jsonrpc.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const COLON = 0x3a;
const BLANK = 0x20;
const lineFeed = Buffer.from('\n');
const byteOrderMark = Buffer.from('\uFEFF');

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
  /** An event grew past the limit and is thrown away. */
  tooLarge(): void;
}

/** The fields that are asked for. */
const fieldNames = ['data', 'event', 'id', 'retry'] as const;
type Field = (typeof fieldNames)[number] | 'ignored';
/** More than a byte order mark and the longest of these names. */
const MAX_NAME_BYTES = 16;

/** Reads a text/event-stream from bytes split anywhere. */
export class SseParser {
  private readonly handlers: SseHandlers;
  private readonly maxBytes: number;
  /** How the line begins, as long as that does not tell which field it is. */
  private readonly name = Buffer.alloc(MAX_NAME_BYTES);
  private nameBytes = 0;
  private field: Field | undefined;
  /** A blank between the colon and the value is not of the value. */
  private skipBlank = false;
  private lineBytes = 0;
  /** Of the lines before this one. */
  private dataBytes = 0;
  private skipNewline = false;
  private atStart = true;
  private type = '';
  private readonly data = new Gathered();
  /** Of the fields but the data. */
  private readonly value = new Gathered();
  private hasData = false;
  private discarding = false;
  /** How many events have come, also those without data. */
  count = 0;
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
    // Each is looked for again only once it is passed: a stream may have one kind of line break and many lines.
    let newline = chunk.indexOf(NEWLINE, start);
    let carriageReturn = chunk.indexOf(CARRIAGE_RETURN, start);
    while (start < chunk.length) {
      if (newline !== -1 && newline < start) newline = chunk.indexOf(NEWLINE, start);
      if (carriageReturn !== -1 && carriageReturn < start)
        carriageReturn = chunk.indexOf(CARRIAGE_RETURN, start);
      const stop =
        carriageReturn === -1 ? newline : newline === -1 ? carriageReturn : Math.min(newline, carriageReturn);
      if (stop === -1) {
        this.add(chunk, start, chunk.length);
        return;
      }
      if (stop > start) this.add(chunk, start, stop);
      this.endLine();
      start = stop + 1;
      if (chunk[stop] === CARRIAGE_RETURN) {
        if (start === chunk.length) this.skipNewline = true;
        else if (chunk[start] === NEWLINE) start++;
      }
    }
  }

  /** More of a line. What is data goes there at once, and is not kept as a line before. */
  private add(chunk: Buffer, start: number, end: number): void {
    this.lineBytes += end - start;
    if (this.discarding) return;
    if (this.dataBytes + this.lineBytes > this.maxBytes) {
      this.discarding = true;
      this.data.clear();
      this.value.clear();
      this.handlers.tooLarge();
      return;
    }
    let at = this.field === undefined ? this.readName(chunk, start, end) : start;
    if (this.skipBlank && at < end) {
      if (chunk[at] === BLANK) at++;
      this.skipBlank = false;
    }
    if (at === end || this.field === 'ignored') return;
    (this.field === 'data' ? this.data : this.value).add(chunk.subarray(at, end));
  }

  /** Gives the place behind the name and its colon, or the end where they are not complete. */
  private readName(chunk: Buffer, start: number, end: number): number {
    for (let at = start; at < end; at++) {
      const byte = chunk[at]!;
      if (byte === COLON) {
        this.beginField();
        this.skipBlank = true;
        return at + 1;
      }
      if (this.nameBytes === MAX_NAME_BYTES) {
        this.field = 'ignored';
        return at;
      }
      this.name[this.nameBytes++] = byte;
    }
    return end;
  }

  private beginField(): void {
    const { name, nameBytes } = this;
    const hasMark = this.atStart && nameBytes >= 3 && byteOrderMark.compare(name, 0, 3) === 0;
    const text = name.toString('latin1', hasMark ? 3 : 0, nameBytes);
    this.field = fieldNames.find((known) => known === text) ?? 'ignored';
    if (this.field !== 'data') return;
    if (this.hasData) this.data.add(lineFeed);
    this.hasData = true;
  }

  private endLine(): void {
    const isBlank = this.lineBytes === 0;
    if (!isBlank && !this.discarding) {
      // A name may stand alone, without a colon.
      if (this.field === undefined) this.beginField();
      this.endField();
    }
    this.lineBytes = 0;
    this.nameBytes = 0;
    this.field = undefined;
    this.skipBlank = false;
    this.atStart = false;
    this.dataBytes = this.data.length;
    if (isBlank) this.endEvent();
  }

  private endField(): void {
    if (this.field === 'data' || this.field === 'ignored') return;
    const text = join(this.value.take()).toString();
    if (this.field === 'event') this.type = text;
    else if (this.field === 'id' && !text.includes('\0')) this.nextId = text;
    else if (this.field === 'retry' && /^\d{1,9}$/.test(text)) this.handlers.retry?.(Number(text));
  }

  private endEvent(): void {
    const { hasData, discarding } = this;
    const type = this.type || 'message';
    const data = this.data.take();
    this.type = '';
    this.dataBytes = 0;
    this.hasData = false;
    this.discarding = false;
    if (this.nextId !== undefined) this.lastEventId = this.nextId;
    this.count++;
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
