import { SwitchboardError } from '../errors.ts';
import { BACKSLASH, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE } from './json-bytes.ts';

/** What has to be built, and not only passed on, has so many values at the most: all of them are built in one go. */
export const MAX_VALUES = 500_000;
/** Strings are passed from quote to quote, and many quotes in them take their time too. */
const QUOTES_PER_VALUE = 8;
/** A shorter text cannot have too much in it. */
const SMALL_CHARACTERS = 64 * 1024;

/** Parses JSON, unless that would hold up everybody. */
export function parseBounded(text: string): unknown {
  checkValues(text, MAX_VALUES);
  return JSON.parse(text);
}

/** Refuses a text with too many values in it. */
export function checkValues(text: string, most: number): void {
  if (!hasMoreValues(text, most)) return;
  throw new SwitchboardError('invalid_request', `What has to be looked into has more than ${most} values.`);
}

/** Whether a long text has more values in it. */
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
      // Whoever parses it says what is wrong with it.
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
