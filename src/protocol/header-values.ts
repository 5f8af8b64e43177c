const OPEN = '=?base64?';
const CLOSE = '?=';
const canonicalBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Printable ASCII, with blanks only inside. */
const plain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A text as the value of a header: as it is where headers can hold it, else as base64 between marks. */
export function headerValueOf(text: string): string {
  const isPlain = plain.test(text) && !(text.startsWith(OPEN) && text.endsWith(CLOSE));
  return isPlain ? text : OPEN + Buffer.from(text).toString('base64') + CLOSE;
}

/** The text that a header's value stands for; undefined where it is marked as base64 and is none. */
export function textOfHeader(value: string): string | undefined {
  const trimmed = value.replace(/^[\t ]+|[\t ]+$/g, '');
  if (!trimmed.startsWith(OPEN) || !trimmed.endsWith(CLOSE)) return trimmed;
  const encoded = trimmed.slice(OPEN.length, -CLOSE.length);
  if (!canonicalBase64.test(encoded)) return undefined;
  try {
    return strictUtf8.decode(Buffer.from(encoded, 'base64'));
  } catch {
    return undefined;
  }
}
