/** PostgreSQL stores neither NUL characters nor halves of surrogate pairs. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '');
}

const MAX_NAME_LENGTH = 1_024;
/** Safely below the size limit of an index row. */
const MAX_NAME_BYTES = 2_048;
/** Strings of this length never exceed MAX_NAME_BYTES. */
const SURE_NAME_LENGTH = Math.floor(MAX_NAME_BYTES / 3);

/** Cuts names from outside that are too long for an index. */
export function storableName(name: string): string {
  if (name.length <= SURE_NAME_LENGTH) return name;
  const cut = name.slice(0, MAX_NAME_LENGTH);
  return Buffer.byteLength(cut) <= MAX_NAME_BYTES ? cut : name.slice(0, SURE_NAME_LENGTH);
}

/** A pair of escaped surrogates, half of one, an escaped NUL, or any other escape. */
const escapes =
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})|(\\u0000)|\\./g;

/** For JSON text, which may also contain them as escapes. */
export function storableJson(json: string): string {
  const text = storableText(json);
  if (!text.includes('\\u')) return text;
  return text.replaceAll(escapes, (found, half: string | undefined, nul: string | undefined) =>
    half !== undefined ? '\\ufffd' : nul !== undefined ? '' : found,
  );
}

/** PostgreSQL rejects queries with an invalid uuid. */
export function isUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
}
