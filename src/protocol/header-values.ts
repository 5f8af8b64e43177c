const OPEN = '=?base64?';
const CLOSE = '?=';
const canonicalBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Printable ASCII, with blanks only inside. */
const plain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
/** 64 KB, the longest URI that we take, as base64. */
const MAX_LENGTH = 88 * 1024;
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A text as the value of a header: as it is where headers can hold it, else as base64 between marks. */
export function headerValueOf(text: string): string {
  const isPlain = plain.test(text) && !(text.startsWith(OPEN) && text.endsWith(CLOSE));
  return isPlain ? text : OPEN + Buffer.from(text).toString('base64') + CLOSE;
}

/** Whether a text is too long to be repeated in a header. */
export function isTooLongForHeader(text: string): boolean {
  return text.length > MAX_LENGTH || headerValueOf(text).length > MAX_LENGTH;
}

/** What is wrong with a header's value that stands for no text. */
export function headerProblem(value: string): string {
  return value.length > MAX_LENGTH ? `is longer than ${MAX_LENGTH} characters` : 'is not valid base64';
}

/** The text that a header's value stands for; undefined where it is too long, or marked as base64 and is none. */
export function textOfHeader(value: string): string | undefined {
  if (value.length > MAX_LENGTH) return undefined;
  const trimmed = trimBlanks(value);
  if (!trimmed.startsWith(OPEN) || !trimmed.endsWith(CLOSE)) return trimmed;
  const encoded = trimmed.slice(OPEN.length, -CLOSE.length);
  if (!canonicalBase64.test(encoded)) return undefined;
  try {
    return strictUtf8.decode(Buffer.from(encoded, 'base64'));
  } catch {
    return undefined;
  }
}

/** A loop, because a pattern that looks for blanks before the end starts over at each blank of a run. */
function trimBlanks(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start++;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
  return value.slice(start, end);
}

function isBlank(character: number): boolean {
  return character === 0x20 || character === 0x09;
}
