import { sql } from 'kysely';
import type { Database } from './database.ts';
import type { SessionRow } from './types.ts';

/** Longer than any session is kept without a client. */
const KEPT_DAYS = 7;

/** Sessions of clients, which go on after a restart. */
export class Sessions {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  /** Those that were seen within that time, the latest first. */
  async seenWithin(milliseconds: number, limit: number): Promise<SessionRow[]> {
    return this.database.run((queries) =>
      queries
        .selectFrom('sessions')
        .select(['id_hash', 'project_id', 'state'])
        .where('seen_at', '>', sql<Date>`now() - make_interval(secs => ${milliseconds / 1_000})`)
        .orderBy('seen_at', 'desc')
        .limit(limit)
        .execute(),
    );
  }

  /** Those of projects that are gone are left out. */
  async keep(rows: readonly SessionRow[]): Promise<void> {
    const hashes = rows.map(({ id_hash }) => id_hash);
    const projects = rows.map(({ project_id }) => project_id);
    const states = rows.map(({ state }) => state);
    await this.database.run((queries) =>
      sql`
        INSERT INTO kb.sessions (id_hash, project_id, state)
          SELECT kept.id_hash, kept.project_id, kept.state
          FROM unnest(${hashes}::text[], ${projects}::uuid[], ${states}::text[]) AS kept (id_hash, project_id, state)
          WHERE kept.project_id IS NULL OR EXISTS (SELECT FROM kb.projects WHERE id = kept.project_id)
          ON CONFLICT (id_hash) DO UPDATE SET state = excluded.state, seen_at = now()
      `.execute(queries),
    );
  }

  async see(hashes: readonly string[]): Promise<void> {
    await this.database.run((queries) =>
      sql`UPDATE kb.sessions SET seen_at = now() WHERE id_hash = ANY(${hashes})`.execute(queries),
    );
  }

  async forget(hashes: readonly string[]): Promise<void> {
    await this.database.run((queries) =>
      sql`DELETE FROM kb.sessions WHERE id_hash = ANY(${hashes})`.execute(queries),
    );
  }

  async deleteOld(): Promise<number> {
    const { numDeletedRows } = await this.database.run((queries) =>
      queries
        .deleteFrom('sessions')
        .where('seen_at', '<', sql<Date>`now() - make_interval(days => ${KEPT_DAYS})`)
        .executeTakeFirstOrThrow(),
    );
    return Number(numDeletedRows);
  }
}
