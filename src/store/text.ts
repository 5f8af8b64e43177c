/** The database keeps neither NUL characters nor halves of surrogate pairs. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '');
}

const MAX_NAME_LENGTH = 1_024;
/** Safely below what a row of an index has room for. */
const MAX_NAME_BYTES = 2_048;
/** This many never have more bytes than that. */
const SURE_NAME_LENGTH = Math.floor(MAX_NAME_BYTES / 3);

/** Names come from outside: one that is too long for an index is cut. */
export function storableName(name: string): string {
  if (name.length <= SURE_NAME_LENGTH) return name;
  const cut = name.slice(0, MAX_NAME_LENGTH);
  return Buffer.byteLength(cut) <= MAX_NAME_BYTES ? cut : name.slice(0, SURE_NAME_LENGTH);
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

/** Asked with anything else, the database would refuse the question. */
export function isUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
}
