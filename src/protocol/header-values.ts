const OPEN = '=?base64?';
const CLOSE = '?=';
const canonicalBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Printable ASCII, with spaces and tabs only inside. */
const plain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
/** The longest URI (64 KB) in base64. */
const MAX_LENGTH = 88 * 1024;
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Encodes a text as a header value: unchanged if headers can carry it, otherwise as marked base64. */
export function headerValueOf(text: string): string {
  const isPlain = plain.test(text) && !(text.startsWith(OPEN) && text.endsWith(CLOSE));
  return isPlain ? text : OPEN + Buffer.from(text).toString('base64') + CLOSE;
}

export function isTooLongForHeader(text: string): boolean {
  return text.length > MAX_LENGTH || headerValueOf(text).length > MAX_LENGTH;
}

/** Why a header value cannot be decoded. */
export function headerProblem(value: string): string {
  return value.length > MAX_LENGTH ? `is longer than ${MAX_LENGTH} characters` : 'is not valid base64';
}

/** Decodes a header value; undefined if it is too long or its base64 is invalid. */
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

/** A loop, because a regular expression would take quadratic time on runs of blanks. */
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
