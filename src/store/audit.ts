import { sql } from 'kysely';
import { appendEntries, type NewAuditEntry } from './audit/append.ts';
import type { AuditRow } from './audit/entry.ts';
import { type Verification, verify } from './audit/verify.ts';
import { numberCursor, parseNumberCursor } from './cursor.ts';
import type { Database, Queries } from './database.ts';
import { isUuid } from './text.ts';

const PAGE = 1_000;
const DELETE_BATCH = 5_000;

export interface AuditFilter {
  /** The id of a project. */
  project?: string | undefined;
  /** The id of the actor. */
  principal?: string | undefined;
  /** Such as `key.create`, or its noun: `key`. */
  action?: string | undefined;
  outcome?: AuditRow['outcome'] | undefined;
  since?: Date | undefined;
  /** Exclusive. */
  until?: Date | undefined;
}

export interface AuditPage {
  /** Newest first. */
  entries: AuditRow[];
  nextCursor: string | undefined;
}

/** What was changed and denied. Entries are only added. */
export class AuditTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  append(entries: readonly NewAuditEntry[]): Promise<void> {
    return this.database.write((changes) => appendEntries(changes, entries));
  }

  async list(filter: AuditFilter & { limit: number; cursor?: string | undefined }): Promise<AuditPage> {
    const { limit, cursor } = filter;
    const before = cursor === undefined ? undefined : parseNumberCursor(cursor);
    const rows = await this.database.run((queries) => {
      let query = matching(queries, filter);
      if (before !== undefined) query = query.where('seq', '<', before);
      return query
        .orderBy('seq', 'desc')
        .limit(limit + 1)
        .execute();
    });
    const entries = rows.slice(0, limit);
    return { entries, nextCursor: rows.length > limit ? numberCursor(entries.at(-1)!.seq) : undefined };
  }

  /** Oldest first, in pages. Ends with the newest entry at the time of the last page. */
  async *each(filter: AuditFilter = {}): AsyncGenerator<AuditRow, void, undefined> {
    for (let last = 0; ; ) {
      const rows = await this.database.run((queries) =>
        matching(queries, filter).where('seq', '>', last).orderBy('seq').limit(PAGE).execute(),
      );
      yield* rows;
      if (rows.length < PAGE) return;
      last = rows.at(-1)!.seq;
    }
  }

  /** Recomputes all hashes. */
  verify(): Promise<Verification> {
    return verify(this.database);
  }

  /** Returns the number of deleted entries. The rest can still be verified. */
  async deleteExpired(days: number): Promise<number> {
    for (let total = 0; ; ) {
      const deleted = await this.deleteBatch(days);
      total += deleted;
      if (deleted < DELETE_BATCH) return total;
    }
  }

  /** Deletes up to the first entry that is to be kept, so that the rest stays a chain. */
  private deleteBatch(days: number): Promise<number> {
    return this.database.write(async (changes) => {
      await sql`SELECT set_config('switchboard.audit_retention', 'on', true)`.execute(changes);
      await changes.selectFrom('audit_anchor').select('seq').forUpdate().execute();
      const oldest = await changes
        .selectFrom('audit_log')
        .select(['seq', 'hash', sql<boolean>`at < now() - make_interval(days => ${days})`.as('is_expired')])
        .orderBy('seq')
        .limit(DELETE_BATCH)
        .execute();
      const kept = oldest.findIndex(({ is_expired }) => !is_expired);
      const last = oldest.at(kept === -1 ? -1 : kept - 1);
      if (kept === 0 || last === undefined) return 0;
      await changes.updateTable('audit_anchor').set({ seq: last.seq, hash: last.hash }).execute();
      const { numDeletedRows } = await changes
        .deleteFrom('audit_log')
        .where('seq', '<=', last.seq)
        .executeTakeFirstOrThrow();
      return Number(numDeletedRows);
    });
  }
}

function matching(queries: Queries, { project, principal, action, outcome, since, until }: AuditFilter) {
  let query = queries.selectFrom('audit_log').selectAll();
  if (project !== undefined)
    query = isUuid(project) ? query.where('project_id', '=', project) : query.where(sql<boolean>`false`);
  if (principal !== undefined) query = query.where('actor_id', '=', principal);
  if (action !== undefined) {
    query = query.where(sql<boolean>`(action = ${action} OR starts_with(action, ${`${action}.`}))`);
  }
  // The second condition lets PostgreSQL use the partial index.
  if (outcome !== undefined) query = query.where('outcome', '=', outcome);
  if (outcome !== undefined && outcome !== 'done') query = query.where('outcome', '!=', 'done');
  if (since !== undefined) query = query.where('at', '>=', since);
  if (until !== undefined) query = query.where('at', '<', until);
  return query;
}
