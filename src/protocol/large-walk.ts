import { setImmediate as nextTurn } from 'node:timers/promises';
import { CLOSE_LIST, CLOSE_OBJECT, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE } from './json-bytes.ts';
import { JsonScanner, MAX_DEPTH, type Passed } from './json-scanner.ts';
import { keyAt, type Member } from './members.ts';

/** Messages up to this size are processed at once, in a few milliseconds. */
export const LARGE_BYTES = 4 * 1024 * 1024;
/** How much is scanned before other work gets its turn. */
const SLICE_BYTES = 256 * 1024;
/** Only large values near the top are noted: the reader skips those. */
const NOTED_BYTES = 1024;
const NOTED_DEPTH = 3;
/** The longest wanted name, with every character escaped, is shorter. */
const LONGEST_NAME = 128;

/**
 * Nested keys of the wanted values; `each` stands for the elements of an array. `string`: the ranges of all strings
 * there. `member`: the range of the member, or of the last one if there are several.
 */
export interface Shape {
  [key: string]: Wanted;
}
type Wanted = Shape | 'string' | 'member';

/** Lets other work run. */
export type Rest = () => Promise<void> | undefined;

export interface Walked {
  /** The ends of large values, by their starts. */
  passed: Passed;
  /** Starts and ends of the wanted strings, with quotes, in one flat array, since there may be very many. */
  strings: number[];
  members: Map<string, Member>;
}

interface Place {
  start: number;
  wanted: Wanted | undefined;
  key: { start: number; name: string } | undefined;
}

interface Container extends Place {
  close: number;
}

/** Validates a large message in slices, and finds the wanted values. */
export async function walkLarge(bytes: Buffer, shape?: Shape, rest: Rest = nextTurn): Promise<Walked> {
  const scanner = new JsonScanner(bytes);
  const passed = new Map<number, number>();
  const strings: number[] = [];
  const members = new Map<string, Member>();
  const open: Container[] = [];
  const over = ({ start, wanted, key }: Place) => {
    const end = scanner.at;
    if (open.length <= NOTED_DEPTH && end - start >= NOTED_BYTES) passed.set(start, end);
    if (wanted === 'string' && bytes[start] === QUOTE) strings.push(start, end);
    else if (wanted === 'member' && key !== undefined)
      members.set(key.name, { start: key.start, end, value: { start, end } });
  };
  let sliceEnd = SLICE_BYTES;
  do {
    if (scanner.at >= sliceEnd) {
      await rest();
      sliceEnd = scanner.at + SLICE_BYTES;
    }
    const inner = open.at(-1);
    const isMember = inner?.close === CLOSE_OBJECT;
    const key = isMember ? readKey(scanner, bytes, asShape(inner?.wanted)) : undefined;
    const wanted = isMember
      ? key && asShape(inner?.wanted)?.[key.name]
      : inner
        ? asShape(inner.wanted)?.each
        : shape;
    const first = scanner.peek();
    const start = scanner.at;
    if (first === OPEN_OBJECT || first === OPEN_LIST) {
      const close = first === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_LIST;
      if (open.length > MAX_DEPTH) scanner.fail(`nested deeper than ${MAX_DEPTH} levels`);
      scanner.at++;
      if (scanner.peek() !== close) {
        open.push({ close, start, wanted, key });
        continue;
      }
      scanner.at++;
    } else if (first !== QUOTE) scanner.skip(0);
    else if (!scanner.beginString(Math.min(start + SLICE_BYTES, scanner.end))) await passRest(scanner, rest);
    over({ start, wanted, key });
    for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
      const next = scanner.peek();
      if (next !== COMMA && next !== last.close)
        scanner.fail(last.close === CLOSE_OBJECT ? "expected ',' or '}'" : "expected ',' or ']'");
      scanner.at++;
      if (next === COMMA) break;
      open.pop();
      over(last);
    }
  } while (open.length > 0);
  scanner.expectEnd();
  return { passed, strings, members };
}

function asShape(wanted: Wanted | undefined): Shape | undefined {
  return typeof wanted === 'object' ? wanted : undefined;
}

/** Skips a key with its colon, and returns it if the shape has it. */
function readKey(scanner: JsonScanner, bytes: Buffer, shape: Shape | undefined): Place['key'] {
  if (scanner.peek() !== QUOTE) scanner.fail('expected a key');
  const start = scanner.at;
  if (!scanner.beginString(Math.min(start + SLICE_BYTES, scanner.end)))
    scanner.fail('unterminated or very long key');
  const end = scanner.at;
  if (scanner.peek() !== COLON) scanner.fail("expected ':'");
  scanner.at++;
  if (shape === undefined || end - start > LONGEST_NAME) return undefined;
  const name = keyAt(bytes, start, end);
  return name !== 'each' && Object.hasOwn(shape, name) ? { start, name } : undefined;
}

async function passRest(scanner: JsonScanner, rest: Rest): Promise<void> {
  do {
    if (scanner.at >= scanner.end) scanner.fail('unterminated string');
    await rest();
  } while (!scanner.restOfString(Math.min(scanner.at + SLICE_BYTES, scanner.end)));
}
