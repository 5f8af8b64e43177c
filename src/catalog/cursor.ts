/**
 * Where a page of a merged list ends: which server, and which of its items. It stays right when servers before
 * or behind it change in between.
 */
export interface Position {
  server: string;
  key: string;
}

export function encodeCursor({ server, key }: Position): string {
  return Buffer.from(JSON.stringify([server, key])).toString('base64url');
}

/** Undefined where the text is no cursor of ours. */
export function decodeCursor(cursor: string): Position | undefined {
  try {
    const [server, key, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (typeof server !== 'string' || typeof key !== 'string' || rest.length > 0) return undefined;
    // base64 has many spellings of the same bytes, and JSON of the same value; only one of them is ours.
    return encodeCursor({ server, key }) === cursor ? { server, key } : undefined;
  } catch {
    return undefined;
  }
}
