import { Gathered } from './gathered.ts';
import { type Chunks, join } from './jsonrpc.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const COLON = 0x3a;
const BLANK = 0x20;
const lineFeed = Buffer.from('\n');
const byteOrderMark = Buffer.from('\uFEFF');

export interface SseEvent {
  /** `message` by default. */
  type: string;
  /** The last id on the stream, as the specification defines it. */
  id: string | undefined;
  data: Chunks;
}

export interface SseHandlers {
  event(event: SseEvent): void;
  retry?(milliseconds: number): void;
  /** An event exceeded the limit and is discarded. */
  tooLarge(): void;
}

const fieldNames = ['data', 'event', 'id', 'retry'] as const;
type Field = (typeof fieldNames)[number] | 'ignored';
/** Longer than a byte order mark and the longest field name. */
const MAX_NAME_BYTES = 16;

/** Parses a text/event-stream from bytes split anywhere. */
export class SseParser {
  private readonly handlers: SseHandlers;
  private readonly maxBytes: number;
  /** The start of a line whose field is not known yet. */
  private readonly name = Buffer.alloc(MAX_NAME_BYTES);
  private nameBytes = 0;
  private field: Field | undefined;
  /** One space after the colon is not part of the value. */
  private skipBlank = false;
  private lineBytes = 0;
  /** For the previous lines of the event. */
  private dataBytes = 0;
  private skipNewline = false;
  private atStart = true;
  private type = '';
  private readonly data = new Gathered();
  /** The value of a field other than `data`. */
  private readonly value = new Gathered();
  private hasData = false;
  private discarding = false;
  /** The number of events so far, including those without data. */
  count = 0;
  /** The id of the last complete event, from which to resume. */
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
    // Each kind of line break is searched again only after it is passed: most streams contain only one kind.
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

  /** Adds a part of a line. Data is collected directly, without buffering the line. */
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

  /** Returns the position after the name and its colon, or the end if they are incomplete. */
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
      // A name may have no colon.
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

/** Formats a message as an event. Line breaks of pretty-printed JSON become spaces. */
export function sseMessage(message: Chunks, id: string | undefined): Buffer[] {
  const lines = message.map(withoutLineBreaks);
  return id === undefined
    ? [eventOpen, dataOpen, ...lines, eventClose]
    : [Buffer.from(`event: message\nid: ${id}\ndata: `), ...lines, eventClose];
}

/** An event with only an id, from which a client can resume before the first message. */
export function ssePrimer(id: string, retryMs: number): Buffer {
  return Buffer.from(`id: ${id}\nretry: ${retryMs}\ndata: \n\n`);
}

export const sseKeepAlive = Buffer.from(': keep-alive\n\n');

/** In JSON, raw line breaks are only white space between tokens, so spaces can replace them. */
export function withoutLineBreaks(chunk: Buffer): Buffer {
  if (chunk.indexOf(NEWLINE) === -1 && chunk.indexOf(CARRIAGE_RETURN) === -1) return chunk;
  const copy = Buffer.from(chunk);
  for (let at = 0; at < copy.length; at++) {
    if (copy[at] === NEWLINE || copy[at] === CARRIAGE_RETURN) copy[at] = 0x20;
  }
  return copy;
}
