import { sql } from 'kysely';
import { SwitchboardError } from '../errors.ts';

/** Where a page of what is listed by time, the newest first, begins. */
interface Place {
  time: Date;
  id: string;
}

export function cursorOf({ time, id }: Place): string {
  return Buffer.from(`${time.toISOString()} ${id}`).toString('base64url');
}

/** What comes behind a cursor, by the column of its time. */
export function behind(cursor: string, column: 'created_at' | 'started_at') {
  const { time, id } = parseCursor(cursor);
  return sql<boolean>`(${sql.ref(column)}, id) < (${time}::timestamptz, ${id}::uuid)`;
}

function parseCursor(cursor: string): { time: string; id: string } {
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([\da-f-]{36})$/.exec(
    Buffer.from(cursor, 'base64url').toString(),
  );
  if (found !== null && !Number.isNaN(Date.parse(found[1]!))) return { time: found[1]!, id: found[2]! };
  throw new SwitchboardError('invalid_input', 'The cursor is not one that was given out.', {
    data: { problems: [{ path: 'cursor', message: 'Take it from next_cursor of a page, or leave it out.' }] },
  });
}
