/** White space as JSON has it. */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The first place from there on that is none. */
export function skipSpace(bytes: Buffer, at: number): number {
  while (isSpace(bytes[at])) at++;
  return at;
}

/** Behind the last place before there that is none. */
export function skipSpaceBack(bytes: Buffer, at: number): number {
  while (at > 0 && isSpace(bytes[at - 1])) at--;
  return at;
}
