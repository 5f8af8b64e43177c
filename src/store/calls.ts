import { sql } from 'kysely';
import { SwitchboardError } from '../errors.ts';
import { writeCalls, writePlainCalls } from './call-records.ts';
import type { Database } from './database.ts';
import { storableName } from './text.ts';
import type { CallFilter, CallPage, CallRecord, CallRow, PlainCalls } from './types.ts';

const DELETE_BATCH = 5_000;

export class Calls {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  record(calls: readonly CallRecord[]): Promise<void> {
    return writeCalls(this.database, calls);
  }

  recordPlain(calls: PlainCalls): Promise<void> {
    return writePlainCalls(this.database, calls);
  }

  list(projectId: string, filter: CallFilter): Promise<CallPage> {
    const { server, tool, status, since, until, limit } = filter;
    const after = filter.cursor === undefined ? undefined : parseCursor(filter.cursor);
    return this.database.run(async (queries) => {
      let query = queries.selectFrom('agent_run_tool_calls').selectAll().where('project_id', '=', projectId);
      if (server !== undefined) query = query.where('server_name', '=', storableName(server));
      if (tool !== undefined) query = query.where('tool_name', '=', storableName(tool));
      // Said twice where it is so, because the index of those that failed has no others.
      if (status !== undefined) query = query.where('status', '=', status);
      if (status !== undefined && status !== 'ok') query = query.where('status', '!=', 'ok');
      if (since !== undefined) query = query.where('created_at', '>=', since);
      if (until !== undefined) query = query.where('created_at', '<', until);
      if (after !== undefined) {
        query = query.where(sql<boolean>`(created_at, id) < (${after.time}::timestamptz, ${after.id}::uuid)`);
      }
      const rows = await query
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute();
      const calls = rows.slice(0, limit);
      return { calls, nextCursor: rows.length > limit ? cursorOf(calls.at(-1)!) : undefined };
    });
  }

  async deleteOld(): Promise<number> {
    const projects = await this.database.run((queries) =>
      queries
        .selectFrom('projects')
        .select(['id', 'retention_days'])
        .where('retention_days', 'is not', null)
        .execute(),
    );
    let total = 0;
    for (const { id, retention_days } of projects) {
      for (let deleted = DELETE_BATCH; deleted === DELETE_BATCH; total += deleted) {
        deleted = await this.deleteBatch(id, retention_days!);
      }
    }
    return total;
  }

  private async deleteBatch(projectId: string, days: number): Promise<number> {
    const { numAffectedRows } = await this.database.run((queries) =>
      sql`
        DELETE FROM kb.agent_run_tool_calls WHERE id IN (
          SELECT id FROM kb.agent_run_tool_calls
          WHERE project_id = ${projectId} AND created_at < now() - make_interval(days => ${days})
          ORDER BY created_at DESC, id DESC LIMIT ${DELETE_BATCH}
        )
      `.execute(queries),
    );
    return Number(numAffectedRows);
  }
}

function cursorOf({ created_at, id }: CallRow): string {
  return Buffer.from(`${created_at.toISOString()} ${id}`).toString('base64url');
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
