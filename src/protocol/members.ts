import {
  BACKSLASH,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COMMA,
  isSpace,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  skipSpaceBack,
} from './json-bytes.ts';
import type { Span } from './json-scanner.ts';
import type { Edit } from './splice.ts';

/** The range of a member, including its key, and that of its value. */
export interface Member extends Span {
  value: Span;
}

const nothing = Buffer.alloc(0);

/**
 * Finds members by name in the object at `at`; of duplicates, the last. Assumes valid JSON and skips large values fast:
 * for invalid JSON, the result is meaningless.
 */
export function membersAt(bytes: Buffer, at: number, names: ReadonlySet<string>): Map<string, Member> {
  const found = new Map<string, Member>();
  let position = skipSpace(bytes, at);
  if (bytes[position] !== OPEN_OBJECT) return found;
  position = skipSpace(bytes, position + 1);
  while (bytes[position] === QUOTE) {
    const start = position;
    const keyEnd = endOfString(bytes, start);
    const valueStart = skipSpace(bytes, skipSpace(bytes, keyEnd) + 1);
    const end = endOfValue(bytes, valueStart);
    const name = keyAt(bytes, start, keyEnd);
    if (names.has(name)) found.set(name, { start, end, value: { start: valueStart, end } });
    position = skipSpace(bytes, end);
    if (bytes[position] === COMMA) position = skipSpace(bytes, position + 1);
  }
  return found;
}

/** Decodes the key between these quotes. */
export function keyAt(bytes: Buffer, start: number, end: number): string {
  const raw = bytes.toString('utf8', start + 1, end - 1);
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
}

function endOfValue(bytes: Buffer, start: number): number {
  let depth = 0;
  let at = start;
  while (at < bytes.length) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      if (depth === 0) return at;
      continue;
    }
    if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      depth++;
    } else if (depth === 0 && (byte === COMMA || isSpace(byte))) {
      return at;
    }
    at++;
  }
  return at;
}

/** Compares bytes first, because most strings are short or full of escapes, and `indexOf` is slow to start. */
export function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length) {
    const near = Math.min(at + NEAR_BYTES, bytes.length);
    while (at < near) {
      const byte = bytes[at]!;
      if (byte === QUOTE) return at + 1;
      at += byte === BACKSLASH ? 2 : 1;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1) break;
    let before = quote - 1;
    while (before >= at && bytes[before] === BACKSLASH) before--;
    if ((quote - before) % 2 === 1) return quote + 1;
    at = quote + 1;
  }
  return bytes.length;
}

const NEAR_BYTES = 64;

/** Edits that remove members from an object, with their commas. */
export function withoutMembers(bytes: Buffer, members: Iterable<Span>): Edit[] {
  const edits: Edit[] = [];
  for (const { start, end } of [...members].sort((one, other) => one.start - other.start)) {
    const after = skipSpace(bytes, end);
    const takesComma = bytes[after] === COMMA;
    const last = edits.at(-1);
    const isAdjacent = last !== undefined && skipSpace(bytes, last.end) === start;
    if (isAdjacent) last.end = takesComma ? after + 1 : end;
    else edits.push({ start, end: takesComma ? after + 1 : end, bytes: nothing });
    if (takesComma) continue;
    // The last member of its object also takes the comma before it.
    const run = edits.at(-1)!;
    const before = skipSpaceBack(bytes, run.start);
    if (bytes[before - 1] === COMMA) run.start = before - 1;
  }
  return edits;
}

/** An edit that inserts members (JSON without braces) into the object at `at`. */
export function withMembers(bytes: Buffer, at: number, members: Buffer): Edit {
  const isEmpty = bytes[skipSpace(bytes, at + 1)] === CLOSE_OBJECT;
  return { start: at + 1, end: at + 1, bytes: isEmpty ? members : Buffer.concat([members, comma]) };
}

const comma = Buffer.from(',');
