import { SwitchboardError } from '../errors.ts';

/** What has to be built, and not only passed on, has so much in it at the most: all of it is built in one go. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
export const MAX_VALUES = 500_000;
/** A shorter text cannot have too much in it. */
const SMALL_CHARACTERS = 64 * 1024;

/** Parses JSON, unless that would hold up everybody. */
export function parseBounded(text: string): unknown {
  checkValues(text, MAX_VALUES);
  return JSON.parse(text);
}

/** Refuses a text with too many values in it. What separates them is counted, also inside of strings. */
export function checkValues(text: string, most: number): void {
  const { length } = text;
  if (length <= SMALL_CHARACTERS) return;
  if (length > MAX_CHARACTERS)
    throw new SwitchboardError(
      'invalid_request',
      `What has to be looked into is longer than ${MAX_CHARACTERS} characters.`,
    );
  let values = 0;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === COLON || code === OPEN_LIST || code === OPEN_OBJECT) values++;
  }
  if (values > most)
    throw new SwitchboardError('invalid_request', `What has to be looked into has more than ${most} values.`);
}

const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;
