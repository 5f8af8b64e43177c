import { setImmediate as nextTurn } from 'node:timers/promises';
import { CLOSE_LIST, CLOSE_OBJECT, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE } from './json-bytes.ts';
import { JsonScanner, MAX_DEPTH, type Passed } from './json-scanner.ts';
import { keyAt, type Member } from './members.ts';

/** A message up to this size is worked on in one go, in a few milliseconds. */
export const LARGE_BYTES = 4 * 1024 * 1024;
/** So much is passed before others get their turn. */
const SLICE_BYTES = 256 * 1024;
/** Values that are worth remembering: large ones, and so deep in a message that its reader comes by. */
const NOTED_BYTES = 1024;
const NOTED_DEPTH = 3;
/** More than any of the wanted names, were each character of it an escape. */
const LONGEST_NAME = 128;

/**
 * The places in a message that are wanted, as nested keys; `each` stands for the elements of an array. `string`: the places
 * of all strings that stand there. `member`: the place of the member, of the last one where there are several.
 */
export interface Shape {
  [key: string]: Wanted;
}
type Wanted = Shape | 'string' | 'member';

/** Lets others have their turn. */
export type Rest = () => Promise<void> | undefined;

/** What a walk over a large message comes by. */
export interface Walked {
  /** Where large values end. */
  passed: Passed;
  /** Where the wanted strings begin and end with their quotes, one number after the other: there may be a great many. */
  strings: number[];
  members: Map<string, Member>;
}

/** A value that has begun, or one that is over at once. */
interface Place {
  start: number;
  wanted: Wanted | undefined;
  key: { start: number; name: string } | undefined;
}

interface Container extends Place {
  close: number;
}

/** Checks the whole text of a large message, with turns for others in between, and finds what is wanted of it. */
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

/** Passes a key with its colon, and gives it where it is one of a shape's. */
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

/** Passes what is left of a long string. */
async function passRest(scanner: JsonScanner, rest: Rest): Promise<void> {
  do {
    if (scanner.at >= scanner.end) scanner.fail('unterminated string');
    await rest();
  } while (!scanner.restOfString(Math.min(scanner.at + SLICE_BYTES, scanner.end)));
}
