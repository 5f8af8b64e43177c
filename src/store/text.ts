/** The database keeps neither NUL characters nor halves of surrogate pairs. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '');
}

/** A pair of escaped surrogates, half of one, an escaped NUL, or any other escape. */
const escapes =
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})|(\\u0000)|\\./g;

/** The same for JSON text, where they may be escaped too. */
export function storableJson(json: string): string {
  const text = storableText(json);
  if (!text.includes('\\u')) return text;
  return text.replaceAll(escapes, (found, half: string | undefined, nul: string | undefined) =>
    half !== undefined ? '\\ufffd' : nul !== undefined ? '' : found,
  );
}
