/**
 * Where a page of a merged list ends: which group, and which of its items. It stays right when groups before
 * or behind it change in between.
 */
export interface Position {
  group: string;
  key: string;
}

/** More than the longest URI has with all of its characters escaped. */
const MAX_LENGTH = 1024 * 1024;

export function encodeCursor({ group, key }: Position): string {
  return Buffer.from(JSON.stringify([group, key])).toString('base64url');
}

/** Undefined where the text is no cursor of ours. */
export function decodeCursor(cursor: string): Position | undefined {
  if (cursor.length > MAX_LENGTH) return undefined;
  try {
    const [group, key, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (typeof group !== 'string' || typeof key !== 'string' || rest.length > 0) return undefined;
    // base64 has many spellings of the same bytes, and JSON of the same value; only one of them is ours.
    return encodeCursor({ group, key }) === cursor ? { group, key } : undefined;
  } catch {
    return undefined;
  }
}
