import { type Selectable, sql } from 'kysely';
import type { CallRow } from './call-record.ts';
import { cutPage, isAfter } from './cursor.ts';
import type { Database } from './database.ts';
import { requireProject } from './project-rows.ts';
import type { DB } from './schema.ts';
import { isUuid, storableJson, storableText } from './text.ts';

const DELETE_BATCH = 1_000;

/** Running processes touch their runs far more often. */
const lost = sql<boolean>`status = 'running' AND seen_at < now() - interval '90 seconds'`;

/** The error of a run whose process disappeared. */
const LOST = 'Switchboard ended in the middle of it, or could not write down how it ended.';

/** A run marked as lost may continue: perhaps only the database was unavailable to its process. */
const isOpen = sql<boolean>`(status = 'running' OR (status = 'failed' AND error = ${LOST}))`;

const inProgress = {
  ...{ status: 'running' as const, error_code: null, error: null, finished_at: null },
  seen_at: sql<Date>`now()`,
};

export type RunRow = Selectable<DB['agent_runs']>;
export type RunMessageRow = Selectable<DB['agent_run_messages']>;

export interface NewRun {
  id: string;
  projectId: string;
  /** Who started it; null for the local user. */
  principalId?: string | null | undefined;
  /** The name of an agent outside Switchboard; null for a chat. */
  agent: string | null;
  model: string;
  system: string | null;
  /** Names and patterns of the allowed tools; null means all. */
  tools: readonly string[] | null;
  /** As JSON. */
  input: unknown;
}

export interface RunMessage {
  id: string;
  /** From 0. */
  position: number;
  role: RunMessageRow['role'];
  /** As JSON. */
  content: unknown;
}

export interface RunEnd {
  status: Exclude<RunRow['status'], 'running'>;
  /** As JSON. */
  output: unknown;
  usage: object | null;
  steps: number;
  stopReason: string | null;
  error: { code: string; message: string } | null;
}

export interface RunFilter {
  /** Undefined: runs of everybody. Null: of the local user. */
  principalId?: string | null | undefined;
}

export interface RunPage {
  /** Newest first. */
  runs: RunRow[];
  nextCursor: string | undefined;
}

export interface RunDetails {
  run: RunRow;
  /** In the order of the conversation. */
  messages: RunMessageRow[];
  /** Oldest first. */
  calls: CallRow[];
}

export class RunTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  async create({ id, projectId, principalId, agent, model, system, tools, input }: NewRun): Promise<void> {
    await this.database.write(async (changes) => {
      // The project may have been deleted since it was looked up.
      await requireProject(changes, projectId);
      await changes
        .insertInto('agent_runs')
        .values({
          ...{ id, project_id: projectId, status: 'running', model: storableText(model) },
          principal_id: principalId ?? null,
          agent: agent === null ? null : storableText(agent),
          system: system === null ? null : storableText(system),
          tools: tools === null ? null : jsonOf(tools),
          input: jsonOf(input),
        })
        .execute();
    });
  }

  /** Skips messages that exist already, and those of deleted runs. */
  async addMessages(runId: string, messages: readonly RunMessage[]): Promise<void> {
    if (messages.length === 0) return;
    const rows = jsonOf(messages);
    await this.database.run((queries) =>
      sql`
        WITH run AS MATERIALIZED (SELECT id FROM kb.agent_runs WHERE id = ${runId} FOR KEY SHARE)
        INSERT INTO kb.agent_run_messages (id, run_id, position, role, content)
        SELECT message.id, run.id, message.position, message.role, message.content
        FROM run, json_to_recordset(${rows}::json) AS message (id uuid, position integer, role text, content jsonb)
        ON CONFLICT (id) DO NOTHING
      `.execute(queries),
    );
  }

  /** Keeps runs in progress from being marked as lost. */
  async touch(ids: readonly string[]): Promise<void> {
    await this.database.run((queries) =>
      queries.updateTable('agent_runs').set(inProgress).where('id', 'in', ids).where(isOpen).execute(),
    );
  }

  /** For an agent in another process. Returns its name, or undefined if there is no such run in progress. */
  async touchExternal(
    projectId: string,
    id: string,
    { principalId }: RunFilter = {},
  ): Promise<string | undefined> {
    if (!isUuid(id)) return undefined;
    const row = await this.database.run((queries) =>
      queries
        .updateTable('agent_runs')
        .set(inProgress)
        .where('id', '=', id)
        .where('project_id', '=', projectId)
        .where('agent', 'is not', null)
        .$if(principalId !== undefined, (query) =>
          query.where('principal_id', 'is not distinct from', principalId!),
        )
        .where(isOpen)
        .returning('agent')
        .executeTakeFirst(),
    );
    return row?.agent ?? undefined;
  }

  async failLost(): Promise<void> {
    await this.database.run((queries) =>
      queries
        .updateTable('agent_runs')
        .set({ status: 'failed', error_code: 'internal', error: LOST, finished_at: sql<Date>`seen_at` })
        .where(lost)
        .execute(),
    );
  }

  /** Only the first result counts. */
  async finish(id: string, end: RunEnd): Promise<void> {
    const { status, output, usage, steps, stopReason, error } = end;
    await this.database.run((queries) =>
      queries
        .updateTable('agent_runs')
        .set({
          ...{ status, steps, stop_reason: stopReason },
          output: output === null ? null : jsonOf(output),
          usage: usage === null ? null : jsonOf(usage),
          error_code: error?.code ?? null,
          error: error === null ? null : storableText(error.message),
          ...{ seen_at: sql<Date>`now()`, finished_at: sql<Date>`now()` },
        })
        .where('id', '=', id)
        .where(isOpen)
        .execute(),
    );
  }

  async list(
    projectId: string,
    { limit, cursor, principalId }: { limit: number; cursor?: string | undefined } & RunFilter,
  ): Promise<RunPage> {
    const after = cursor === undefined ? undefined : isAfter(cursor, 'started_at');
    return this.database.run(async (queries) => {
      let query = queries
        .selectFrom('agent_runs')
        .selectAll()
        .select(lost.as('is_lost'))
        .where('project_id', '=', projectId);
      if (principalId !== undefined) query = query.where('principal_id', 'is not distinct from', principalId);
      if (after !== undefined) query = query.where(after);
      const rows = await query
        .orderBy('started_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute();
      const { page, nextCursor } = cutPage(rows, limit, ({ started_at }) => started_at);
      return { runs: page.map(settled), nextCursor };
    });
  }

  async get(projectId: string, id: string, { principalId }: RunFilter = {}): Promise<RunDetails | undefined> {
    if (!isUuid(id)) return undefined;
    return this.database.readTogether(async (queries) => {
      const row = await queries
        .selectFrom('agent_runs')
        .selectAll()
        .select(lost.as('is_lost'))
        .where('project_id', '=', projectId)
        .where('id', '=', id)
        .$if(principalId !== undefined, (query) =>
          query.where('principal_id', 'is not distinct from', principalId!),
        )
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const messages = await queries
        .selectFrom('agent_run_messages')
        .selectAll()
        .where('run_id', '=', id)
        .orderBy('position')
        .execute();
      const calls = await queries
        .selectFrom('agent_run_tool_calls')
        .selectAll()
        .where('run_id', '=', id)
        .orderBy('created_at')
        .orderBy('id')
        .execute();
      return { run: settled(row), messages, calls };
    });
  }

  /** Deletes runs past their project's retention, with their messages and calls. */
  async deleteExpired(): Promise<number> {
    for (let total = 0; ; ) {
      const { numAffectedRows } = await this.database.run((queries) =>
        sql`
          DELETE FROM kb.agent_runs WHERE id IN (
            SELECT run.id FROM kb.agent_runs AS run JOIN kb.projects AS project ON project.id = run.project_id
            WHERE run.started_at < now() - make_interval(days => project.retention_days)
            LIMIT ${DELETE_BATCH}
          )
        `.execute(queries),
      );
      total += Number(numAffectedRows);
      if (Number(numAffectedRows) < DELETE_BATCH) return total;
    }
  }
}

/** Shows a lost run as failed before `failLost` has updated its row. */
function settled({ is_lost, ...run }: RunRow & { is_lost: boolean }): RunRow {
  if (!is_lost) return run;
  return { ...run, status: 'failed', error_code: 'internal', error: LOST, finished_at: run.seen_at };
}

function jsonOf(value: unknown): string {
  return storableJson(JSON.stringify(value));
}
