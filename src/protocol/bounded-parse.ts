import { SwitchboardError } from '../errors.ts';
import { BACKSLASH, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE } from './json-bytes.ts';

/** The limit for JSON that is parsed instead of relayed, because parsing blocks the event loop. */
export const MAX_VALUES = 500_000;
/** Strings are skipped from quote to quote, so escaped quotes take time too. */
const QUOTES_PER_VALUE = 8;
/** Shorter texts are not counted. */
const SMALL_CHARACTERS = 64 * 1024;

/** Parses JSON, unless that would block the event loop for too long. */
export function parseBounded(text: string): unknown {
  checkValues(text, MAX_VALUES);
  return JSON.parse(text);
}

export function checkValues(text: string, most: number): void {
  if (!hasMoreValues(text, most)) return;
  throw new SwitchboardError(
    'invalid_request',
    `The message has more than ${most} values where they have to be parsed.`,
  );
}

export function hasMoreValues(text: string, most: number): boolean {
  const { length } = text;
  if (length <= SMALL_CHARACTERS) return false;
  let values = 0;
  let quotes = 0;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === COLON || code === OPEN_LIST || code === OPEN_OBJECT) {
      values++;
    } else if (code === QUOTE) {
      do {
        at = text.indexOf('"', at + 1);
        quotes++;
      } while (at !== -1 && isEscaped(text, at) && quotes <= most * QUOTES_PER_VALUE);
      // The parser reports the error.
      if (at === -1) return false;
    }
    if (values > most || quotes > most * QUOTES_PER_VALUE) return true;
  }
  return false;
}

function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text.charCodeAt(before - 1) === BACKSLASH) before--;
  return (at - before) % 2 === 1;
}
