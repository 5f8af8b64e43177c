import { sql } from 'kysely';
import type { CallRecord, CallRow, PlainCalls } from './call-record.ts';
import { writeCalls, writePlainCalls } from './call-records.ts';
import { cutPage, isAfter } from './cursor.ts';
import type { Database } from './database.ts';
import { storableName } from './text.ts';

const DELETE_BATCH = 5_000;

export interface CallFilter {
  server?: string | undefined;
  tool?: string | undefined;
  status?: CallRow['status'] | undefined;
  /** The id of the one who made it; `local` for the local user. */
  principal?: string | undefined;
  since?: Date | undefined;
  /** Exclusive. */
  until?: Date | undefined;
  limit: number;
  cursor?: string | undefined;
}

export interface CallPage {
  /** Newest first. */
  calls: CallRow[];
  nextCursor: string | undefined;
}

export class CallTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  /** Calls of deleted projects are skipped. */
  record(calls: readonly CallRecord[]): Promise<void> {
    return writeCalls(this.database, calls);
  }

  recordPlain(calls: PlainCalls): Promise<void> {
    return writePlainCalls(this.database, calls);
  }

  list(projectId: string, filter: CallFilter): Promise<CallPage> {
    const { server, tool, status, principal, since, until, limit } = filter;
    const after = filter.cursor === undefined ? undefined : isAfter(filter.cursor, 'created_at');
    return this.database.run(async (queries) => {
      let query = queries.selectFrom('agent_run_tool_calls').selectAll().where('project_id', '=', projectId);
      if (server !== undefined) query = query.where('server_name', '=', storableName(server));
      if (tool !== undefined) query = query.where('tool_name', '=', storableName(tool));
      // In these two, the second condition lets PostgreSQL use a partial index.
      if (principal !== undefined) query = query.where('principal_id', '=', storableName(principal));
      if (principal !== undefined && principal !== 'local')
        query = query.where('principal_id', '!=', 'local');
      if (status !== undefined) query = query.where('status', '=', status);
      if (status !== undefined && status !== 'ok') query = query.where('status', '!=', 'ok');
      if (since !== undefined) query = query.where('created_at', '>=', since);
      if (until !== undefined) query = query.where('created_at', '<', until);
      if (after !== undefined) query = query.where(after);
      const rows = await query
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute();
      const { page, nextCursor } = cutPage(rows, limit, ({ created_at }) => created_at);
      return { calls: page, nextCursor };
    });
  }

  async deleteExpired(): Promise<number> {
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
