import { createHash } from 'node:crypto';
import type { ClientBase } from 'pg';
import { SwitchboardError } from '../errors.ts';
import { sql as projects } from './migrations/0001-projects.ts';
import { sql as offers } from './migrations/0002-offers.ts';
import { sql as sessions } from './migrations/0003-sessions.ts';
import { sql as agentRuns } from './migrations/0004-agent-runs.ts';
import { sql as transport } from './migrations/0005-transport.ts';
import { sql as names } from './migrations/0006-names.ts';
import { sql as formerNames } from './migrations/0007-former-names.ts';
import { sql as access } from './migrations/0008-access.ts';

/** Unlikely to be used by other programs. */
const LOCK = 7_400_001;
const OLDEST_SERVER = 15;

export interface Migration {
  number: number;
  name: string;
  sql: string;
  checksum: string;
}

/** In order. A released migration never changes, not even its comments: its checksum is stored. */
export const migrations: readonly Migration[] = (
  [
    ['projects', projects],
    ['offers', offers],
    ['sessions', sessions],
    ['agent-runs', agentRuns],
    ['transport', transport],
    ['names', names],
    ['former-names', formerNames],
    ['access', access],
  ] as const
).map(([name, sql], index) => ({
  number: index + 1,
  name,
  sql,
  checksum: createHash('sha256').update(sql).digest('hex'),
}));

/** Runs in one transaction. If several processes start at the same time, one migrates and the others wait. */
export async function migrate(
  client: ClientBase,
  wanted: readonly Migration[] = migrations,
  oldestServer = OLDEST_SERVER,
): Promise<void> {
  await requireServer(client, oldestServer);
  await client.query('BEGIN');
  try {
    // Another process may migrate for longer than the usual statement timeout.
    await client.query('SET LOCAL statement_timeout = 0');
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    const applied = await readApplied(client);
    check(applied, wanted);
    for (const { number, name, sql, checksum } of wanted.slice(applied.length)) {
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
  // Checked first, because a user without CREATE may still use an existing schema.
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
        `The database belongs to a newer Switchboard: it has migration ${found.number} (${found.name}), and this version has ${migrations.length}. Update Switchboard, or use another database.`,
      );
    }
    if (known.number !== found.number || known.checksum !== found.checksum) {
      throw new SwitchboardError(
        'invalid_config',
        `Migration ${found.number} (${found.name}) of the database differs from the one in this Switchboard, so its tables may differ too. Use the Switchboard version that created the database, or another database.`,
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
    `The database user is not allowed to create the tables of Switchboard: ${(error as Error).message}. As an administrator of the database, run: GRANT CREATE ON DATABASE ${database} TO ${user}`,
    { cause: error },
  );
}
