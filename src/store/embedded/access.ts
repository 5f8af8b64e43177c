import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type pg from 'pg';
import { createPrivateFile, readPrivateFile, replacePrivateFile } from '../../private-files.ts';
import { SUPERUSER } from './cluster.ts';

/** The role of Switchboard in the embedded PostgreSQL: it owns its schema and has no other rights. */
export const ROLE = 'switchboard_app';

const closed = `# Written by Switchboard: nobody else is let in, not even the superuser, for whom there is postgres --single.
local all ${ROLE} scram-sha-256
`;
const open = `# Written by Switchboard, which is about to set its password.
local all ${SUPERUSER} trust
`;

/** Creates the password if its file is missing or empty. */
export function passwordFor(data: string, warn: (message: string) => void): string {
  const path = join(dirname(data), 'postgres.password');
  const fresh = `${randomBytes(32).toString('base64url')}\n`;
  createPrivateFile(path, fresh);
  const advice = 'Remove it and restart for a new password of the database.';
  // The owner of the database files does not need the password.
  const trusted = statSync(data, { throwIfNoEntry: false })?.uid;
  const known = readPrivateFile(path, { advice, warn, trusted }).trim();
  if (known !== '') return known;
  replacePrivateFile(path, fresh);
  return readFileSync(path, 'utf8').trim();
}

/** Whether the socket needs no password: in a new cluster, or one of an older Switchboard. Restores missing rules. */
export function isOpen(data: string): boolean {
  if (!existsSync(rulesOf(data))) writeRules(data, closed);
  const rules = readFileSync(rulesOf(data), 'utf8').split('\n');
  return rules.some((rule) => !rule.trimStart().startsWith('#') && /\btrust\b/.test(rule));
}

/** Allows setting a new password if the old one is lost. The owner of the files can always do this. */
export function reopen(data: string): void {
  writeRules(data, open);
}

/** Creates the role, makes it the owner of the schema, and rejects all other roles. */
export async function close(client: pg.Client, data: string, password: string): Promise<void> {
  await client.query('BEGIN');
  // The password is random, so more iterations would only slow down connections.
  await client.query("SET LOCAL scram_iterations = 1; SET LOCAL password_encryption = 'scram-sha-256'");
  const { rowCount } = await client.query('SELECT FROM pg_roles WHERE rolname = $1', [ROLE]);
  if (rowCount === 0) await client.query(`CREATE ROLE ${ROLE}`);
  await client.query(
    `ALTER ROLE ${ROLE} LOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION NOBYPASSRLS PASSWORD ${client.escapeLiteral(password)}`,
  );
  await client.query(`GRANT CONNECT, CREATE, TEMPORARY ON DATABASE postgres TO ${ROLE}`);
  await client.query(giveSchema);
  await client.query('COMMIT');
  writeRules(data, closed);
  await client.query('SELECT pg_reload_conf()');
  // Sessions that connected before.
  await client.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
  );
}

/** REASSIGN OWNED does not work for the bootstrap superuser. Sequences of columns follow their tables. */
const giveSchema = `DO $$
DECLARE command text;
BEGIN
  FOR command IN
    SELECT format('ALTER SCHEMA %I OWNER TO ${ROLE}', nspname) FROM pg_namespace WHERE nspname = 'kb'
    UNION ALL
    SELECT format('ALTER %s %s OWNER TO ${ROLE}', CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, oid::regclass)
    FROM pg_class WHERE relnamespace = to_regnamespace('kb') AND relkind IN ('r', 'p', 'v', 'm', 'S')
      AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype IN ('a', 'i') AND relkind = 'S')
    UNION ALL
    SELECT format('ALTER ROUTINE %s OWNER TO ${ROLE}', oid::regprocedure) FROM pg_proc WHERE pronamespace = to_regnamespace('kb')
    UNION ALL
    SELECT format('ALTER TYPE %s OWNER TO ${ROLE}', oid::regtype) FROM pg_type WHERE typnamespace = to_regnamespace('kb') AND typtype IN ('e', 'd')
  LOOP
    EXECUTE command;
  END LOOP;
END $$`;

function rulesOf(data: string): string {
  return join(data, 'pg_hba.conf');
}

function writeRules(data: string, rules: string): void {
  const { uid, gid } = statSync(data);
  replacePrivateFile(rulesOf(data), rules);
  if (uid !== process.getuid?.()) chownSync(rulesOf(data), uid, gid);
}
