import type { ClientBase } from 'pg';
import { SwitchboardError } from '../errors.ts';
import { type Migration, migrations as ours } from './migrations.ts';

/** Any number that no other program is likely to lock. */
const LOCK = 7_400_001;
const OLDEST_SERVER = 15;

/**
 * Brings the database to the schema of this program, in one transaction. Of several processes that start at once, one
 * does the work and the others wait for it.
 */
export async function migrate(
  client: ClientBase,
  migrations: readonly Migration[] = ours,
  oldestServer = OLDEST_SERVER,
): Promise<void> {
  await requireServer(client, oldestServer);
  await client.query('BEGIN');
  try {
    // Whoever is first may take longer than a statement has otherwise.
    await client.query('SET LOCAL statement_timeout = 0');
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    const applied = await readApplied(client);
    check(applied, migrations);
    for (const { number, name, sql, checksum } of migrations.slice(applied.length)) {
      await client.query(sql);
      await client.query('INSERT INTO kb.migrations (number, name, checksum) VALUES ($1, $2, $3)', [
        number,
        name,
        checksum,
      ]);
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw await explain(client, error);
  }
}

type Applied = Omit<Migration, 'sql'>;

async function requireServer(client: ClientBase, oldest: number): Promise<void> {
  const { rows } = await client.query<{ number: string; name: string }>(
    "SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS name",
  );
  const { number, name } = rows[0]!;
  if (Number(number) >= oldest * 10_000) return;
  throw new SwitchboardError(
    'invalid_config',
    `The database server is PostgreSQL ${name}; Switchboard needs ${oldest} or newer.`,
  );
}

async function readApplied(client: ClientBase): Promise<Applied[]> {
  const { rows } = await client.query<{ schema: boolean; table: boolean }>(
    `SELECT to_regnamespace('kb') IS NOT NULL AS schema, to_regclass('kb.migrations') IS NOT NULL AS table`,
  );
  // Asked before: whoever may not create a schema may use one that is there.
  if (!rows[0]!.schema) await client.query('CREATE SCHEMA kb');
  if (!rows[0]!.table) {
    await client.query(
      `CREATE TABLE kb.migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        checksum text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
      )`,
    );
  }
  const applied = await client.query<Applied>(
    'SELECT number, name, checksum FROM kb.migrations ORDER BY number',
  );
  return applied.rows;
}

function check(applied: Applied[], migrations: readonly Migration[]): void {
  for (const [index, found] of applied.entries()) {
    const known = migrations[index];
    if (known === undefined) {
      throw new SwitchboardError(
        'invalid_config',
        `The database was used by a newer Switchboard: it has migration ${found.number} (${found.name}), and this one knows ${migrations.length}. Update Switchboard, or use another database.`,
      );
    }
    if (known.number !== found.number || known.checksum !== found.checksum) {
      throw new SwitchboardError(
        'invalid_config',
        `Migration ${found.number} (${found.name}) of the database is not the one of this Switchboard, so its tables cannot be relied on. Use the Switchboard that made it, or another database.`,
      );
    }
  }
}

async function explain(client: ClientBase, error: unknown): Promise<unknown> {
  if ((error as { code?: string }).code !== '42501') return error;
  const { rows } = await client.query<{ user: string; database: string }>(
    'SELECT quote_ident(current_user) AS user, quote_ident(current_database()) AS database',
  );
  const { user, database } = rows[0]!;
  return new SwitchboardError(
    'invalid_config',
    `The database user may not make the tables of Switchboard: ${(error as Error).message}. As an administrator of the database, run: GRANT CREATE ON DATABASE ${database} TO ${user}`,
    { cause: error },
  );
}
