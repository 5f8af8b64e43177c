import { type Selectable, sql } from 'kysely';
import { newKey } from '../../identity/keys.ts';
import type { Role } from '../../identity/roles.ts';
import type { Changes, Database, Queries } from '../database.ts';
import type { ProjectRow } from '../project-rows.ts';
import type { DB } from '../schema.ts';
import { isUuid } from '../text.ts';
import { accessOf } from './cascades.ts';
import { nameTaken, noSuch, type PrincipalRow, projectOf } from './rows.ts';

const NAMES = 'principals_project_id_name_key';

/** Without the hash. `id` is the public part of the key. */
type KeySecret = Pick<
  Selectable<DB['keys']>,
  'id' | 'principal_id' | 'created_at' | 'expires_at' | 'last_used_at'
>;

/** The principal of a program, with the role that it holds where it belongs. */
export interface KeyRow extends PrincipalRow {
  role: Role | null;
  /** Newest first; several if the key is being rotated. */
  secrets: KeySecret[];
}

export interface NewKeyInput {
  name: string;
  /** Null: all projects. */
  projectId: string | null;
  role: Role;
  expiresAt: Date | null;
}

export interface KeyChanges {
  name?: string | undefined;
  /** Null: never. */
  expiresAt?: Date | null | undefined;
}

export interface KeyFilter {
  /** Null: those that belong to no project; undefined: all. */
  projectId?: string | null | undefined;
}

/** `text` is the key, which is stored nowhere. */
export interface IssuedKey {
  key: KeyRow;
  text: string;
}

async function readKeys(queries: Queries, { projectId, id }: KeyFilter & { id?: string }): Promise<KeyRow[]> {
  const principals = await queries
    .selectFrom('principals')
    .leftJoin('grants', (join) =>
      join
        .onRef('grants.principal_id', '=', 'principals.id')
        .onRef('grants.project_id', 'is not distinct from', 'principals.project_id'),
    )
    .selectAll('principals')
    .select('grants.role')
    .where('principals.kind', '=', 'key')
    .$if(projectId !== undefined, (query) =>
      query.where('principals.project_id', 'is not distinct from', projectId!),
    )
    .$if(id !== undefined, (query) => query.where('principals.id', '=', id!))
    .orderBy('principals.name')
    .orderBy('principals.created_at')
    .execute();
  const secrets = await queries
    .selectFrom('keys')
    .innerJoin('principals', 'principals.id', 'keys.principal_id')
    .select(['keys.id', 'principal_id', 'keys.created_at', 'keys.expires_at', 'last_used_at'])
    .$if(projectId !== undefined, (query) =>
      query.where('principals.project_id', 'is not distinct from', projectId!),
    )
    .$if(id !== undefined, (query) => query.where('principals.id', '=', id!))
    .orderBy('keys.created_at', 'desc')
    .orderBy('keys.id')
    .execute();
  const secretsOf = Map.groupBy(secrets, ({ principal_id }) => principal_id);
  return principals.map((principal) => ({ ...principal, secrets: secretsOf.get(principal.id) ?? [] }));
}

/** A project's id that is none has no keys. */
export function listKeys(database: Database, filter: KeyFilter): Promise<KeyRow[]> {
  if (typeof filter.projectId === 'string' && !isUuid(filter.projectId)) return Promise.resolve([]);
  return database.readTogether((queries) => readKeys(queries, filter));
}

export async function getKey(database: Database, id: string): Promise<KeyRow | undefined> {
  if (!isUuid(id)) return undefined;
  return (await database.readTogether((queries) => readKeys(queries, { id })))[0];
}

export function createKey(database: Database, input: NewKeyInput): Promise<IssuedKey> {
  const { name, projectId, role, expiresAt } = input;
  return nameTaken(NAMES, 'key', name, () =>
    database.write(async (changes, audit) => {
      const project = await projectOf(changes, projectId);
      const principal = await changes
        .insertInto('principals')
        .values({ kind: 'key', name, project_id: projectId, expires_at: expiresAt })
        .returning('id')
        .executeTakeFirstOrThrow();
      const text = await addSecret(changes, principal.id);
      await changes
        .insertInto('grants')
        .values({ principal_id: principal.id, project_id: projectId, role })
        .execute();
      const key = await requireKey(changes, principal.id);
      audit({ action: 'key.create', project, subject: name, after: shown(key) });
      return { key, text };
    }),
  );
}

export function changeKey(database: Database, id: string, input: KeyChanges): Promise<KeyRow> {
  const { name, expiresAt } = input;
  return nameTaken(NAMES, 'key', name, () =>
    database.write(async (changes, audit) => {
      const { key: before, project } = await lockKey(changes, id);
      await setColumns(changes, before, input);
      const key = await requireKey(changes, id);
      const isSame =
        key.name === before.name && (expiresAt === undefined || +expiresAt! === +before.expires_at!);
      if (!isSame) {
        audit({
          ...{ action: 'key.change', project, subject: before.name },
          ...{ before: shown(before), after: shown(key) },
        });
      }
      return key;
    }),
  );
}

/** The present secrets stay valid for `overlapMs`, at most; for 0, they end at once. */
export function rotateKey(
  database: Database,
  id: string,
  { overlapMs, expiresAt }: { overlapMs: number; expiresAt?: Date | null | undefined },
): Promise<IssuedKey> {
  return database.write(async (changes, audit) => {
    const { key: before, project } = await lockKey(changes, id);
    await setColumns(changes, before, { expiresAt });
    await endSecrets(changes, id, overlapMs);
    const text = await addSecret(changes, id);
    const key = await requireKey(changes, id);
    audit({
      ...{ action: 'key.rotate', project, subject: key.name },
      ...{ before: shown(before), after: shown(key) },
    });
    return { key, text };
  });
}

/** With its grants, memberships, and the rules and limits about it alone. */
export function revokeKey(database: Database, id: string): Promise<void> {
  return database.write(async (changes, audit) => {
    const { key, project } = await lockKey(changes, id);
    const before = { ...shown(key), ...(await accessOf(changes, { principals: [id] })) };
    await changes.deleteFrom('principals').where('id', '=', id).execute();
    audit({ action: 'key.revoke', project, subject: key.name, before });
  });
}

/** `id` is the public part of a key. */
export async function touchKeys(
  database: Database,
  uses: readonly { id: string; at: Date }[],
): Promise<void> {
  if (uses.length === 0) return;
  const ids = uses.map(({ id }) => id);
  const times = uses.map(({ at }) => at.toISOString());
  // In order, because other processes do the same.
  await database.run((queries) =>
    sql`
      WITH used AS (
        SELECT id, max(at) AS at FROM unnest(${ids}::text[], ${times}::timestamptz[]) AS used (id, at) GROUP BY id
      ), locked AS (
        SELECT key.id, used.at FROM kb.keys AS key JOIN used USING (id) ORDER BY key.id FOR NO KEY UPDATE OF key
      )
      UPDATE kb.keys SET last_used_at = greatest(keys.last_used_at, locked.at)
      FROM locked WHERE keys.id = locked.id
    `.execute(queries),
  );
}

async function addSecret(changes: Changes, principalId: string): Promise<string> {
  const { id, text, hash } = newKey();
  await changes.insertInto('keys').values({ id, principal_id: principalId, hash }).execute();
  return text;
}

async function endSecrets(changes: Changes, principalId: string, overlapMs: number): Promise<void> {
  const end = sql<Date>`now() + make_interval(secs => ${Math.max(0, overlapMs) / 1_000})`;
  await changes
    .deleteFrom('keys')
    .where('principal_id', '=', principalId)
    .$if(overlapMs > 0, (query) => query.where('expires_at', '<=', sql<Date>`now()`))
    .execute();
  await changes
    .updateTable('keys')
    .set({ expires_at: sql<Date>`least(expires_at, ${end})` })
    .where('principal_id', '=', principalId)
    .execute();
}

async function setColumns(changes: Changes, { id }: KeyRow, { name, expiresAt }: KeyChanges): Promise<void> {
  if (name === undefined && expiresAt === undefined) return;
  await changes
    .updateTable('principals')
    .set({
      ...(name === undefined ? {} : { name }),
      ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
    })
    .where('id', '=', id)
    .execute();
}

/** Locks the principal's row. The project's row comes first, as in all transactions. */
async function lockKey(
  changes: Changes,
  id: string,
): Promise<{ key: KeyRow; project: ProjectRow | undefined }> {
  const { project_id } = await requireKey(changes, id);
  const project = await projectOf(changes, project_id);
  await changes.selectFrom('principals').select('id').where('id', '=', id).forNoKeyUpdate().execute();
  return { key: await requireKey(changes, id), project };
}

async function requireKey(changes: Changes, id: string): Promise<KeyRow> {
  const [key] = isUuid(id) ? await readKeys(changes, { id }) : [];
  if (key === undefined) throw noSuch('key', id);
  return key;
}

/** For the audit log. */
function shown({ id, name, role, expires_at, secrets }: KeyRow): object {
  return {
    ...{ id, name, role, expires_at },
    secrets: secrets.map((secret) => ({ id: secret.id, expires_at: secret.expires_at })),
  };
}
