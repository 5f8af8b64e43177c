export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_LIST = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_LIST = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The position of the first byte from `at` that is not white space. */
export function skipSpace(bytes: Buffer, at: number): number {
  while (isSpace(bytes[at])) at++;
  return at;
}

/** The position after the last byte before `at` that is not white space. */
export function skipSpaceBack(bytes: Buffer, at: number): number {
  while (at > 0 && isSpace(bytes[at - 1])) at--;
  return at;
}

export function isPlain(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH;
}

/** Whether no byte is a control character, quote or backslash: a borrow sets the high bit of such a byte. */
export function isPlainWord(word: number): boolean {
  const quotes = word ^ 0x22222222;
  const slashes = word ^ 0x5c5c5c5c;
  const found =
    ((word - 0x20202020) & ~word) | ((quotes - 0x01010101) & ~quotes) | ((slashes - 0x01010101) & ~slashes);
  return (found & 0x80808080) === 0;
}

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

export function isHexDigit(byte: number | undefined): boolean {
  return (
    isDigit(byte) ||
    (byte !== undefined && ((byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66)))
  );
}

export function digits(bytes: Uint8Array, at: number): number {
  while (isDigit(bytes[at])) at++;
  return at;
}
