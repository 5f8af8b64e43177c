/** State that Switchboard continues with after a restart. Rows expire if they are not written for some days. */
import { type Selectable, sql } from 'kysely';
import type { Database } from './database.ts';
import type { DB } from './schema.ts';

/** What a server offered when it was last seen, with the fingerprint of its transport settings. */
export type OfferRow = Omit<Selectable<DB['server_offers']>, 'seen_at'>;
export type SessionRow = Omit<Selectable<DB['sessions']>, 'seen_at'>;
/** Names that clients of a project were shown; a null project is the view of all projects. */
export type FormerNamesRow = Omit<Selectable<DB['former_names']>, 'changed_at'>;

interface Layout<Row> {
  table: string;
  columns: readonly (keyof Row & string)[];
  /** The columns of the unique index. */
  key: string;
  timestamp: string;
  keptDays: number;
}

class ExpiringTable<Row extends { project_id: string | null }> {
  protected readonly database: Database;
  private readonly layout: Layout<Row>;

  constructor(database: Database, layout: Layout<Row>) {
    this.database = database;
    this.layout = layout;
  }

  async all(): Promise<Row[]> {
    const { table, columns } = this.layout;
    const query = sql<Row>`SELECT ${sql.raw(columns.join(', '))} FROM ${sql.raw(table)}`;
    return (await this.database.run((queries) => query.execute(queries))).rows;
  }

  /** Inserts or replaces. Rows of deleted projects are skipped. */
  async save(rows: readonly Row[]): Promise<void> {
    const { table, columns, key, timestamp } = this.layout;
    const names = columns.join(', ');
    const values = columns.map((column) => {
      const type = sql.raw(column === 'project_id' ? 'uuid[]' : 'text[]');
      return sql`${rows.map((row) => row[column])}::${type}`;
    });
    const updates = columns.map((column) => `${column} = excluded.${column}`).join(', ');
    const insertion = sql`
      INSERT INTO ${sql.raw(`${table} (${names})`)}
        SELECT given.* FROM unnest(${sql.join(values)}) AS ${sql.raw(`given (${names})`)}
        WHERE given.project_id IS NULL OR EXISTS (SELECT FROM kb.projects WHERE id = given.project_id)
        ON CONFLICT (${sql.raw(key)}) DO UPDATE SET ${sql.raw(`${updates}, ${timestamp} = now()`)}
    `;
    await this.database.run((queries) => insertion.execute(queries));
  }

  async deleteExpired(): Promise<number> {
    const { table, timestamp, keptDays } = this.layout;
    const deletion = sql`
      DELETE FROM ${sql.raw(table)} WHERE ${sql.raw(timestamp)} < now() - make_interval(days => ${keptDays})
    `;
    const { numAffectedRows } = await this.database.run((queries) => deletion.execute(queries));
    return Number(numAffectedRows);
  }
}

export class OfferTable extends ExpiringTable<OfferRow> {
  constructor(database: Database) {
    super(database, {
      table: 'kb.server_offers',
      columns: ['project_id', 'server_name', 'fingerprint', 'offer'],
      key: 'project_id, server_name',
      timestamp: 'seen_at',
      keptDays: 30,
    });
  }

  /** Keeps an unchanged offer from expiring. */
  async touch({ project_id, server_name }: Pick<OfferRow, 'project_id' | 'server_name'>): Promise<void> {
    await this.database.run((queries) =>
      queries
        .updateTable('server_offers')
        .set({ seen_at: sql<Date>`now()` })
        .where('project_id', '=', project_id)
        .where('server_name', '=', server_name)
        .execute(),
    );
  }
}

export class FormerNamesTable extends ExpiringTable<FormerNamesRow> {
  constructor(database: Database) {
    super(database, {
      table: 'kb.former_names',
      columns: ['project_id', 'names'],
      key: "COALESCE(project_id::text, '')",
      timestamp: 'changed_at',
      keptDays: 30,
    });
  }
}

export class SessionTable extends ExpiringTable<SessionRow> {
  constructor(database: Database) {
    super(database, {
      table: 'kb.sessions',
      columns: ['id_hash', 'project_id', 'state'],
      key: 'id_hash',
      timestamp: 'seen_at',
      // Longer than a session may be idle.
      keptDays: 7,
    });
  }

  /** Most recent first. */
  seenWithin(milliseconds: number, limit: number): Promise<SessionRow[]> {
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

  async touch(hashes: readonly string[]): Promise<void> {
    await this.database.run((queries) =>
      sql`UPDATE kb.sessions SET seen_at = now() WHERE id_hash = ANY(${hashes})`.execute(queries),
    );
  }

  async delete(hashes: readonly string[]): Promise<void> {
    await this.database.run((queries) =>
      sql`DELETE FROM kb.sessions WHERE id_hash = ANY(${hashes})`.execute(queries),
    );
  }
}
