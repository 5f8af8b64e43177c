import { sql } from 'kysely';
import { SwitchboardError } from '../errors.ts';

/** Expects rows sorted by time and id, newest first, and read with `limit + 1`. */
export function cutPage<Row extends { id: string }>(rows: Row[], limit: number, timeOf: (row: Row) => Date) {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  if (last === undefined || rows.length <= limit) return { page, nextCursor: undefined };
  const nextCursor = Buffer.from(`${timeOf(last).toISOString()} ${last.id}`).toString('base64url');
  return { page, nextCursor };
}

/** Selects the rows after the cursor. */
export function isAfter(cursor: string, column: 'created_at' | 'started_at') {
  const { time, id } = parseCursor(cursor);
  return sql<boolean>`(${sql.ref(column)}, id) < (${time}::timestamptz, ${id}::uuid)`;
}

function parseCursor(cursor: string): { time: string; id: string } {
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([\da-f-]{36})$/.exec(
    Buffer.from(cursor, 'base64url').toString(),
  );
  if (found !== null && !Number.isNaN(Date.parse(found[1]!))) return { time: found[1]!, id: found[2]! };
  throw invalidCursor();
}

/** For rows that are sorted by a number. */
export function numberCursor(number: number): string {
  return Buffer.from(String(number)).toString('base64url');
}

export function parseNumberCursor(cursor: string): number {
  const text = Buffer.from(cursor, 'base64url').toString();
  if (!/^\d{1,15}$/.test(text)) throw invalidCursor();
  return Number(text);
}

function invalidCursor(): SwitchboardError {
  return new SwitchboardError('invalid_input', 'The cursor is invalid.', {
    data: { problems: [{ path: 'cursor', message: 'Use next_cursor of a page, or omit it.' }] },
  });
}
