import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { SwitchboardError } from '../errors.ts';
import { type Message, readMessage } from './envelope.ts';
import { JsonScanner, JsonSyntaxError, MAX_DEPTH, type Passed } from './json-scanner.ts';

/** A message up to this size is read in one go, in a few milliseconds. */
export const LARGE_BYTES = 4 * 1024 * 1024;
/** So much is passed before others get their turn. */
const SLICE_BYTES = 1024 * 1024;
/** Values that are worth remembering: large ones, and so deep in a message that its reader comes by. */
const NOTED_BYTES = 4 * 1024;
const NOTED_DEPTH = 3;

/** Reads one large message as `readMessage` does, with turns for others in between. */
export async function readLargeMessage(bytes: Buffer): Promise<Message> {
  if (!isUtf8(bytes)) throw new SwitchboardError('parse_error', 'The message is not valid UTF-8.');
  try {
    return readMessage(bytes, await passLarge(bytes));
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new SwitchboardError('parse_error', `The message is not valid JSON: ${error.message}.`);
  }
}

/** Checks the whole text, and tells where its large values end. */
async function passLarge(bytes: Buffer): Promise<Passed> {
  const scanner = new JsonScanner(bytes);
  if (scanner.peek() === OPEN_LIST)
    throw new SwitchboardError(
      'invalid_request',
      `A batch has ${LARGE_BYTES} bytes at the most: send its messages one by one.`,
    );
  const passed = new Map<number, number>();
  const open: { close: number; start: number }[] = [];
  const note = (start: number) => {
    if (open.length <= NOTED_DEPTH && scanner.at - start >= NOTED_BYTES) passed.set(start, scanner.at);
  };
  let sliceEnd = SLICE_BYTES;
  do {
    if (scanner.at >= sliceEnd) {
      await nextTurn();
      sliceEnd = scanner.at + SLICE_BYTES;
    }
    if (open.at(-1)?.close === CLOSE_OBJECT) passKey(scanner);
    const first = scanner.peek();
    const start = scanner.at;
    if (first === OPEN_OBJECT || first === OPEN_LIST) {
      const close = first === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_LIST;
      if (open.length > MAX_DEPTH) scanner.fail(`nested deeper than ${MAX_DEPTH} levels`);
      scanner.at++;
      if (scanner.peek() !== close) {
        open.push({ close, start });
        continue;
      }
      scanner.at++;
    } else if (first !== QUOTE) scanner.skip(0);
    else if (!scanner.beginString(Math.min(start + SLICE_BYTES, scanner.end))) await passRest(scanner);
    note(start);
    for (let inner = open.at(-1); inner !== undefined; inner = open.at(-1)) {
      const next = scanner.peek();
      if (next !== COMMA && next !== inner.close)
        scanner.fail(inner.close === CLOSE_OBJECT ? "expected ',' or '}'" : "expected ',' or ']'");
      scanner.at++;
      if (next === COMMA) break;
      open.pop();
      note(inner.start);
    }
  } while (open.length > 0);
  scanner.expectEnd();
  return passed;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

function passKey(scanner: JsonScanner): void {
  if (scanner.peek() !== QUOTE) scanner.fail('expected a key');
  if (!scanner.beginString(Math.min(scanner.at + SLICE_BYTES, scanner.end)))
    scanner.fail('unterminated or very long key');
  if (scanner.peek() !== COLON) scanner.fail("expected ':'");
  scanner.at++;
}

/** Passes what is left of a long string. */
async function passRest(scanner: JsonScanner): Promise<void> {
  do {
    if (scanner.at >= scanner.end) scanner.fail('unterminated string');
    await nextTurn();
  } while (!scanner.restOfString(Math.min(scanner.at + SLICE_BYTES, scanner.end)));
}
