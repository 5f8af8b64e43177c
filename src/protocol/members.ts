import { JsonScanner, type Span } from './json-scanner.ts';
import type { Edit } from './splice.ts';

/** One member of an object: the whole of it, key and all, and its value. */
export interface Member extends Span {
  value: Span;
}

const nothing = Buffer.alloc(0);

/** The members of these names in the object that begins there. Of a name that stands there twice, the last one. */
export function membersAt(bytes: Buffer, at: number, names: ReadonlySet<string>): Map<string, Member> {
  const found = new Map<string, Member>();
  const scanner = new JsonScanner(bytes, at);
  if (scanner.peek() !== 0x7b) return found;
  scanner.object((start, end, escaped) => {
    const raw = bytes.toString('utf8', start, end);
    const name = escaped ? (JSON.parse(`"${raw}"`) as string) : raw;
    const value = scanner.span();
    if (names.has(name)) found.set(name, { start: start - 1, end: value.end, value });
  });
  return found;
}

/** The edits that take members out of an object, with the commas that they leave over. */
export function withoutMembers(bytes: Buffer, members: Iterable<Span>): Edit[] {
  const edits: Edit[] = [];
  for (const { start, end } of [...members].sort((one, other) => one.start - other.start)) {
    const after = skipSpace(bytes, end);
    const takesComma = bytes[after] === 0x2c;
    const last = edits.at(-1);
    const isAdjacent = last !== undefined && skipSpace(bytes, last.end) === start;
    if (isAdjacent) last.end = takesComma ? after + 1 : end;
    else edits.push({ start, end: takesComma ? after + 1 : end, bytes: nothing });
    if (takesComma) continue;
    // The last member of its object: the comma before it goes, where something is left before that.
    const run = edits.at(-1)!;
    const before = skipSpaceBack(bytes, run.start);
    if (bytes[before - 1] === 0x2c) run.start = before - 1;
  }
  return edits;
}

/** The edit that puts members (their text, without braces) into the object that begins there. */
export function withMembers(bytes: Buffer, at: number, members: Buffer): Edit {
  const isEmpty = bytes[skipSpace(bytes, at + 1)] === 0x7d;
  return { start: at + 1, end: at + 1, bytes: isEmpty ? members : Buffer.concat([members, COMMA]) };
}

const COMMA = Buffer.from(',');

function skipSpace(bytes: Buffer, at: number): number {
  while (isSpace(bytes[at])) at++;
  return at;
}

function skipSpaceBack(bytes: Buffer, at: number): number {
  while (at > 0 && isSpace(bytes[at - 1])) at--;
  return at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
