import { sql } from 'kysely';
import type { Database } from './database.ts';
import type { FormerNamesRow } from './types.ts';

/** Longer than any session is expected back. */
const KEPT_DAYS = 30;

/** Names that clients were shown, and that sessions go on using after a restart. */
export class FormerNamesTable {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  all(): Promise<FormerNamesRow[]> {
    return this.database.run((queries) =>
      queries.selectFrom('former_names').select(['project_id', 'names']).execute(),
    );
  }

  /** Those of a project that is gone are left out. */
  async keep({ project_id, names }: FormerNamesRow): Promise<void> {
    await this.database.run((queries) =>
      sql`
        INSERT INTO kb.former_names (project_id, names)
          SELECT kept.project_id, kept.names
          FROM (VALUES (${project_id}::uuid, ${names}::text)) AS kept (project_id, names)
          WHERE kept.project_id IS NULL OR EXISTS (SELECT FROM kb.projects WHERE id = kept.project_id)
          ON CONFLICT (COALESCE(project_id::text, '')) DO UPDATE SET names = excluded.names, changed_at = now()
      `.execute(queries),
    );
  }

  async deleteOld(): Promise<number> {
    const { numDeletedRows } = await this.database.run((queries) =>
      queries
        .deleteFrom('former_names')
        .where('changed_at', '<', sql<Date>`now() - make_interval(days => ${KEPT_DAYS})`)
        .executeTakeFirstOrThrow(),
    );
    return Number(numDeletedRows);
  }
}
