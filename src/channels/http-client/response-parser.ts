import {
  CHUNKED,
  type HeadReader,
  MalformedResponseError,
  type ResponseHead,
  UNTIL_CLOSE,
} from './response-head.ts';

export interface ResponseSink {
  onHead(head: ResponseHead): void;
  /** A part of the body. The sink owns it. */
  onData(chunk: Buffer): void;
  /** The response is complete. `leftOver` unexpected bytes followed it. */
  onEnd(leftOver: number): void;
}

/** For a head, for all trailers together, and for a chunk extension. */
const MAX_HEAD_BYTES = 64 * 1024;
const MAX_SIZE_DIGITS = 13;
const FIRST_COLLECTION_BYTES = 1_024;

const CARRIAGE_RETURN = 0x0d;
const NEWLINE = 0x0a;
const headEnd = Buffer.from('\r\n\r\n');
const opening = Buffer.from('HTTP/1.');

const NOT_HTTP = 'it is not HTTP/1.1';
const HEAD_TOO_LONG = `its head is over ${MAX_HEAD_BYTES} bytes`;
const BAD_CHUNKS = 'its chunks are malformed';

type State =
  | 'idle'
  | 'head'
  | 'length'
  | 'until-close'
  | 'chunk-size'
  | 'chunk-extension'
  | 'chunk-size-end'
  | 'chunk-data'
  | 'chunk-data-return'
  | 'chunk-data-newline'
  | 'trailer-start'
  | 'trailer'
  | 'trailer-end'
  | 'last-newline';

/** Parses the responses on one connection, one after the other, from bytes split anywhere. */
export class ResponseParser {
  private readonly sink: ResponseSink;
  private readonly heads: HeadReader;
  private state: State = 'idle';
  /** An incomplete head. */
  private collected = Buffer.alloc(0);
  private collectedBytes = 0;
  /** Missing bytes of the body or chunk. */
  private missing = 0;
  private sizeDigits = 0;
  /** Bytes so far of a chunk extension or the trailers. */
  private lineBytes = 0;

  constructor(sink: ResponseSink, heads: HeadReader) {
    this.sink = sink;
    this.heads = heads;
  }

  start(): void {
    this.state = 'head';
    this.collectedBytes = 0;
  }

  stop(): void {
    this.state = 'idle';
  }

  /** Parses the first `length` bytes. Copies what goes to the sink if they are `lent`. Throws if they are not a valid response. */
  push(bytes: Buffer, length: number, lent: boolean): void {
    let at = 0;
    while (at < length) {
      switch (this.state) {
        case 'idle':
          return;
        case 'head':
          at = this.readHead(bytes, at, length);
          break;
        case 'length':
        case 'chunk-data':
          at = this.readKnown(bytes, at, length, lent);
          break;
        case 'until-close':
          this.pass(bytes, at, length, lent);
          return;
        default:
          this.readFraming(bytes[at]!, length - at - 1);
          at++;
      }
    }
  }

  /** The server closed the connection, which ends some responses and breaks others. */
  finish(): void {
    if (this.state === 'idle') return;
    if (this.state === 'until-close') {
      this.end(0);
      return;
    }
    const hasStarted = this.state !== 'head' || this.collectedBytes > 0;
    throw new Error(
      `the server closed the connection ${hasStarted ? 'during its response' : 'without a response'}`,
    );
  }

  private readHead(bytes: Buffer, start: number, length: number): number {
    if (this.collectedBytes === 0) {
      // Bytes after `length` are stale.
      const end = bytes.indexOf(headEnd, start);
      if (end !== -1 && end + headEnd.length <= length) {
        if (end - start > MAX_HEAD_BYTES) throw malformed(HEAD_TOO_LONG);
        this.beginBody(bytes.toString('latin1', start, end), length - end - headEnd.length);
        return end + headEnd.length;
      }
    }
    return this.collectHead(bytes, start, length);
  }

  private collectHead(bytes: Buffer, start: number, length: number): number {
    const before = this.collectedBytes;
    const taken = Math.min(length - start, MAX_HEAD_BYTES + headEnd.length - before);
    this.reserve(before + taken);
    bytes.copy(this.collected, before, start, start + taken);
    this.collectedBytes += taken;
    const { collected, collectedBytes } = this;
    const end = collected.subarray(0, collectedBytes).indexOf(headEnd, Math.max(0, before - headEnd.length));
    if (end === -1) {
      rejectOtherProtocols(collected, before, collectedBytes);
      if (collectedBytes === MAX_HEAD_BYTES + headEnd.length) throw malformed(HEAD_TOO_LONG);
      return start + taken;
    }
    const rest = start + end + headEnd.length - before;
    this.collectedBytes = 0;
    this.beginBody(collected.toString('latin1', 0, end), length - rest);
    return rest;
  }

  private reserve(size: number): void {
    if (this.collected.length >= size) return;
    const larger = Buffer.allocUnsafe(Math.max(size, this.collected.length * 2, FIRST_COLLECTION_BYTES));
    this.collected.copy(larger, 0, 0, this.collectedBytes);
    this.collected = larger;
  }

  private beginBody(text: string, following: number): void {
    const head = this.heads.read(text);
    if (head.status < 200) {
      if (head.status === 101) throw malformed('it switches to another protocol');
      return;
    }
    this.missing = head.bodyBytes;
    switch (head.bodyBytes) {
      case CHUNKED:
        this.beginChunk();
        break;
      case UNTIL_CLOSE:
        this.state = 'until-close';
        break;
      default:
        this.state = 'length';
    }
    this.sink.onHead(head);
    if (head.bodyBytes === 0 && this.state === 'length') this.end(following);
  }

  private readKnown(bytes: Buffer, start: number, length: number, lent: boolean): number {
    const end = Math.min(length, start + this.missing);
    this.missing -= end - start;
    if (this.missing === 0 && this.state === 'chunk-data') this.state = 'chunk-data-return';
    this.pass(bytes, start, end, lent);
    if (this.missing === 0 && this.state === 'length') this.end(length - end);
    return end;
  }

  private pass(bytes: Buffer, start: number, end: number, lent: boolean): void {
    if (!lent) {
      this.sink.onData(bytes.subarray(start, end));
      return;
    }
    const copy = Buffer.allocUnsafe(end - start);
    bytes.copy(copy, 0, start, end);
    this.sink.onData(copy);
  }

  private readFraming(byte: number, following: number): void {
    switch (this.state) {
      case 'chunk-size':
        this.readSize(byte);
        return;
      case 'chunk-extension':
        if (byte === CARRIAGE_RETURN) this.state = 'chunk-size-end';
        else this.skipLineByte(byte);
        return;
      case 'chunk-size-end':
        expectByte(byte, NEWLINE);
        this.state = this.missing === 0 ? 'trailer-start' : 'chunk-data';
        this.lineBytes = 0;
        return;
      case 'chunk-data-return':
        expectByte(byte, CARRIAGE_RETURN);
        this.state = 'chunk-data-newline';
        return;
      case 'chunk-data-newline':
        expectByte(byte, NEWLINE);
        this.beginChunk();
        return;
      case 'trailer-start':
        if (byte === CARRIAGE_RETURN) {
          this.state = 'last-newline';
          return;
        }
        this.state = 'trailer';
        this.skipLineByte(byte);
        return;
      case 'trailer':
        if (byte === CARRIAGE_RETURN) this.state = 'trailer-end';
        else this.skipLineByte(byte);
        return;
      case 'trailer-end':
        expectByte(byte, NEWLINE);
        this.state = 'trailer-start';
        return;
      case 'last-newline':
        expectByte(byte, NEWLINE);
        this.end(following);
    }
  }

  private beginChunk(): void {
    this.state = 'chunk-size';
    this.missing = 0;
    this.sizeDigits = 0;
    this.lineBytes = 0;
  }

  private readSize(byte: number): void {
    const digit = hexDigit(byte);
    if (digit !== -1) {
      this.missing = this.missing * 16 + digit;
      if (++this.sizeDigits > MAX_SIZE_DIGITS) throw malformed(BAD_CHUNKS);
      return;
    }
    if (this.sizeDigits === 0) throw malformed(BAD_CHUNKS);
    if (byte === CARRIAGE_RETURN) this.state = 'chunk-size-end';
    else if (byte === 0x3b || byte === 0x20 || byte === 0x09) this.state = 'chunk-extension';
    else throw malformed(BAD_CHUNKS);
  }

  private skipLineByte(byte: number): void {
    if (byte === NEWLINE || byte === 0 || ++this.lineBytes > MAX_HEAD_BYTES) throw malformed(BAD_CHUNKS);
  }

  private end(leftOver: number): void {
    this.state = 'idle';
    this.sink.onEnd(leftOver);
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

function expectByte(byte: number, expected: number): void {
  if (byte !== expected) throw malformed(BAD_CHUNKS);
}

/** Rejects early what cannot become a head, because its sender may wait for us. */
function rejectOtherProtocols(collected: Buffer, before: number, length: number): void {
  const compared = Math.min(length, opening.length);
  if (before < opening.length && collected.compare(opening, 0, compared, 0, compared) !== 0)
    throw malformed(NOT_HTTP);
  for (
    let at = collected.indexOf(NEWLINE, before);
    at !== -1 && at < length;
    at = collected.indexOf(NEWLINE, at + 1)
  ) {
    if (collected[at - 1] !== CARRIAGE_RETURN) throw malformed(NOT_HTTP);
  }
}

function malformed(what: string): MalformedResponseError {
  return new MalformedResponseError(what);
}
