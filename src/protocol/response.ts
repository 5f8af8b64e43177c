import {
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isDigit,
  isSpace,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  skipSpaceBack,
} from './json-bytes.ts';
import { type Chunks, join } from './jsonrpc.ts';
import { withMembers } from './members.ts';
import type { Message } from './message.ts';
import { type Edit, splice } from './splice.ts';

/** The position of the id in a response. */
export interface ResponseId {
  id: number;
  isError: boolean;
  chunk: number;
  start: number;
  end: number;
  /** The start of the result or error: in the first chunk, or right after it. */
  payload: number;
  /** Set if nothing after the id was read: the range of its member with the comma, and the closing brace. */
  early?: { start: number; end: number; closing: number };
}

/** The same for a parsed response. */
export function responseIdOf({ id, idSpan, kind, result }: Message): ResponseId {
  const { start, end } = idSpan!;
  return { id: Number(id), isError: kind === 'error', chunk: 0, start, end, payload: result?.start ?? 0 };
}

const idKey = Buffer.from(',"id":');

/**
 * Finds the id of a response to our own request (so it is a small integer) in the first or last bytes of the message,
 * where every known server writes it. Undefined means that the whole message must be parsed.
 */
export function findResponseId(chunks: Chunks): ResponseId | undefined {
  const head = new HeadReader(chunks[0]!);
  if (!head.read()) return undefined;
  const last = chunks.length - 1;
  if (head.idStart === -1) {
    const tail = idAtEnd(chunks[last]!);
    return tail && { ...tail, isError: head.isError, chunk: last, payload: head.payload };
  }
  const closing = skipSpaceBack(chunks[last]!, chunks[last]!.length) - 1;
  if (chunks[last]![closing] !== CLOSE_OBJECT) return undefined;
  return {
    id: head.id,
    isError: head.isError,
    chunk: 0,
    start: head.idStart,
    end: head.idEnd,
    payload: head.payload,
    early: { start: head.memberStart, end: head.memberEnd, closing },
  };
}

/**
 * Replaces the id of a response. An early id moves to the end: parsers take the last of duplicate keys, so a server
 * cannot answer another request with a second, hidden id.
 */
export function withResponseId(chunks: Chunks, at: ResponseId, id: Buffer): Buffer[] {
  const chunk = chunks[at.chunk]!;
  if (at.early !== undefined) {
    const { start, end, closing } = at.early;
    const last = chunks[chunks.length - 1]!;
    const before = chunk.subarray(0, start);
    const between =
      chunks.length === 1
        ? [chunk.subarray(end, closing)]
        : [chunk.subarray(end), ...chunks.slice(1, -1), last.subarray(0, closing)];
    return [before, ...between, idKey, id, last.subarray(closing)];
  }
  const spliced = [chunk.subarray(0, at.start), id, chunk.subarray(at.end)];
  if (chunks.length === 1) return spliced;
  return [...chunks.slice(0, at.chunk), ...spliced, ...chunks.slice(at.chunk + 1)];
}

/** The same as edits of a joined response. */
export function responseIdEdits({ start, end, early }: ResponseId, id: Buffer): Edit[] {
  if (early === undefined) return [{ start, end, bytes: id }];
  const { closing } = early;
  return [
    { start: early.start, end: early.end, bytes: Buffer.alloc(0) },
    { start: closing, end: closing, bytes: Buffer.concat([idKey, id]) },
  ];
}

/** Inserts members into the result, if it is an object. */
export function withResultMembers(
  answer: Chunks,
  at: ResponseId,
  members: Buffer,
): { chunks: Chunks; at: ResponseId } {
  const first = answer[0]!;
  const open = skipSpace(first, at.payload);
  // The first chunk must show whether the result is empty.
  if (answer.length > 1 && skipSpace(first, open + 1) >= first.length)
    return withResultMembers([join(answer)], inOneChunk(answer, at), members);
  if (first[open] !== OPEN_OBJECT) return { chunks: answer, at };
  const edit = withMembers(first, open, members);
  const moved = (place: number) => (place > open ? place + edit.bytes.length : place);
  const { chunk, start, end, early } = at;
  return {
    chunks: [splice(first, [edit]), ...answer.slice(1)],
    at: {
      ...at,
      ...(chunk === 0 ? { start: moved(start), end: moved(end) } : {}),
      ...(early === undefined || answer.length > 1
        ? {}
        : { early: { ...early, closing: moved(early.closing) } }),
    },
  };
}

/** The same position after the chunks are joined. */
export function inOneChunk(chunks: Chunks, at: ResponseId): ResponseId {
  let before = 0;
  for (const chunk of chunks.slice(0, at.chunk)) before += chunk.length;
  let beforeLast = 0;
  for (const chunk of chunks.slice(0, -1)) beforeLast += chunk.length;
  const { start, end, early } = at;
  return {
    ...at,
    chunk: 0,
    start: before + start,
    end: before + end,
    ...(early === undefined ? {} : { early: { ...early, closing: beforeLast + early.closing } }),
  };
}

class HeadReader {
  private readonly bytes: Buffer;
  private at = 0;
  id = -1;
  idStart = -1;
  idEnd = -1;
  memberStart = -1;
  memberEnd = -1;
  isError = false;
  payload = -1;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Returns true if only `jsonrpc` and `id` precede the payload. */
  read(): boolean {
    if (!this.take(OPEN_OBJECT)) return false;
    for (;;) {
      this.space();
      if (this.word('"jsonrpc"')) {
        if (!this.take(COLON) || !this.spacedWord('"2.0"') || !this.take(COMMA)) return false;
      } else if (this.word('"id"')) {
        this.memberStart = this.at - 4;
        if (this.idStart !== -1 || !this.take(COLON) || !this.number() || !this.take(COMMA)) return false;
        this.memberEnd = this.at;
      } else if (this.word('"result"')) {
        return this.begin();
      } else if (this.word('"error"')) {
        this.isError = true;
        return this.begin();
      } else {
        return false;
      }
    }
  }

  private begin(): boolean {
    const hasColon = this.take(COLON);
    this.space();
    this.payload = this.at;
    return hasColon;
  }

  private space(): void {
    while (isSpace(this.bytes[this.at])) this.at++;
  }

  private take(byte: number): boolean {
    this.space();
    if (this.bytes[this.at] !== byte) return false;
    this.at++;
    return true;
  }

  private spacedWord(word: string): boolean {
    this.space();
    return this.word(word);
  }

  private word(word: string): boolean {
    if (!standsAt(this.bytes, this.at, word)) return false;
    this.at += word.length;
    return true;
  }

  private number(): boolean {
    this.space();
    this.idStart = this.at;
    let value = 0;
    for (; isDigit(this.bytes[this.at]); this.at++) value = value * 10 + this.bytes[this.at]! - 0x30;
    this.idEnd = this.at;
    this.id = value;
    return isPlainId(this.idStart, this.idEnd);
  }
}

/**
 * The id as the last member, or the last before `jsonrpc`. In valid JSON these bytes cannot be anything else: the
 * closing brace ends the message, and inside a string a quote would follow the digits.
 */
function idAtEnd(bytes: Buffer): { id: number; start: number; end: number } | undefined {
  let at = skipSpaceBack(bytes, bytes.length);
  if (bytes[at - 1] !== CLOSE_OBJECT) return undefined;
  at = skipSpaceBack(bytes, at - 1);
  if (bytes[at - 1] === QUOTE) {
    at = wordBack(bytes, at, '"2.0"');
    at = wordBack(bytes, at, ':');
    at = wordBack(bytes, at, '"jsonrpc"');
    at = wordBack(bytes, at, ',');
  }
  const end = at;
  while (isDigit(bytes[at - 1])) at--;
  const start = at;
  if (!isPlainId(start, end)) return undefined;
  at = wordBack(bytes, skipSpaceBack(bytes, at), ':');
  at = wordBack(bytes, at, '"id"');
  at = wordBack(bytes, at, ',');
  if (at < 0) return undefined;
  return { id: Number(bytes.toString('latin1', start, end)), start, end };
}

/** Steps back over a word and the white space before it. Returns -1 if the word is missing, and for an `at` of -1. */
function wordBack(bytes: Buffer, at: number, word: string): number {
  const start = at - word.length;
  return at > 0 && start >= 0 && standsAt(bytes, start, word) ? skipSpaceBack(bytes, start) : -1;
}

function standsAt(bytes: Buffer, at: number, word: string): boolean {
  for (let index = 0; index < word.length; index++) {
    if (bytes[at + index] !== word.charCodeAt(index)) return false;
  }
  return true;
}

/** Up to 15 digits: an integer that a double holds exactly. */
function isPlainId(start: number, end: number): boolean {
  return start >= 0 && end > start && end - start <= 15;
}
