import { type Selectable, sql } from 'kysely';
import { SwitchboardError } from '../errors.ts';
import type { Audit, Changes, Database, Queries } from './database.ts';
import { reasonOf } from './failure.ts';
import type { Keyring } from './keyring.ts';
import { type Key, seal, unseal } from './keys.ts';
import { notFound, type ProjectRow, requireProject } from './project-rows.ts';
import type { DB } from './schema.ts';

/** Shared by transactions that seal, exclusive for those that change keys. */
const KEYS_LOCK = 7_400_002;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
export const MAX_VALUE_BYTES = 65_536;
/** How many secrets an error lists. */
const MAX_NAMED = 10;

/** Encrypted. `version` changes with the value, not with the key. */
export type SealedSecret = Selectable<DB['secrets']>;
type Placed = Pick<SealedSecret, 'project_id' | 'name'>;

/** Collects secrets, names them, and writes them at the end. */
interface Chest {
  keep(wanted: string, value: string, isDefault: boolean): string;
  write(): Promise<void>;
}

export class SecretTable {
  private readonly database: Database;
  private readonly keyring: Keyring;

  constructor(database: Database, keyring: Keyring) {
    this.database = database;
    this.keyring = keyring;
  }

  /** Setting the current value again changes nothing. */
  put(projectId: string, name: string, value: string): Promise<{ created: boolean }> {
    checkSecret(name, value);
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, projectId);
      await this.lockKeys(changes);
      if (await this.isKept(changes, projectId, name, value)) return { created: false };
      const sealed = seal(value, this.keyring.current(), placeOf({ project_id: projectId, name }));
      const row = await changes
        .insertInto('secrets')
        .values({ project_id: projectId, name, ...sealed })
        .onConflict((conflict) =>
          conflict
            .columns(['project_id', 'name'])
            .doUpdateSet({ ...sealed, version: sql`gen_random_uuid()` }),
        )
        // xmax is 0 only for a row that was inserted, not updated.
        .returning(sql<boolean>`xmax = 0`.as('created'))
        .executeTakeFirstOrThrow();
      audit({
        ...{ action: 'secret.set', project, subject: name },
        ...{ before: row.created ? undefined : { name }, after: { name } },
      });
      return { created: row.created };
    });
  }

  /** Callers must hold the lock on the project's row, so that names stay free. */
  async chest(changes: Changes, audit: Audit, project: ProjectRow): Promise<Chest> {
    const { id: projectId } = project;
    await this.lockKeys(changes);
    const rows = await changes
      .selectFrom('secrets')
      .selectAll()
      .where('project_id', '=', projectId)
      .execute();
    const known = new Map<string, string | undefined>(rows.map((row) => [row.name, this.openOrNothing(row)]));
    const added: { name: string; value: string }[] = [];
    return {
      keep: (wanted, value, isDefault) => {
        if (isDefault && known.has(wanted)) return wanted;
        let name = wanted;
        for (let count = 2; known.has(name) && known.get(name) !== value; count++)
          name = `${wanted}_${count}`;
        if (known.has(name)) return name;
        checkSecret(name, value);
        known.set(name, value);
        added.push({ name, value });
        return name;
      },
      write: async () => {
        for (const { name, value } of added) {
          const sealed = seal(value, this.keyring.current(), placeOf({ project_id: projectId, name }));
          await changes
            .insertInto('secrets')
            .values({ project_id: projectId, name, ...sealed })
            .execute();
          audit({ action: 'secret.set', project, subject: name, after: { name } });
        }
      },
    };
  }

  delete(projectId: string, name: string): Promise<void> {
    return this.database.write(async (changes, audit) => {
      const project = await requireProject(changes, projectId);
      const { numDeletedRows } = await changes
        .deleteFrom('secrets')
        .where('project_id', '=', projectId)
        .where('name', '=', name)
        .executeTakeFirst();
      if (numDeletedRows === 0n) throw notFound('secret', name, project.name);
      audit({ action: 'secret.remove', project, subject: name, before: { name } });
    });
  }

  open(sealed: SealedSecret): string {
    const key = this.keyring.find(sealed.key_id);
    if (key === undefined) {
      throw new SwitchboardError(
        'invalid_config',
        `The secret "${sealed.name}" was sealed with a key that is missing. ${this.keyring.advice}`,
      );
    }
    try {
      return unseal(sealed, key, placeOf(sealed));
    } catch (error) {
      throw new SwitchboardError(
        'invalid_config',
        `The secret "${sealed.name}" cannot be decrypted: it is damaged, or was moved from another project or name. Set it again.`,
        { cause: error },
      );
    }
  }

  /** Warns at start about secrets that cannot be opened, before a server needs them. */
  async warnOfMissingKeys(warn: (message: string) => void): Promise<void> {
    const missing = await this.database.run((queries) => this.findMissing(queries));
    if (missing !== undefined) warn(`${missing.message} ${this.keyring.generalAdvice}`);
  }

  /** Seals every secret with a new key, or with the first key of SWITCHBOARD_SECRET_KEY. */
  async rotate(): Promise<{ rotated: number; keyId: string }> {
    const done = await this.database.write(async (changes, audit) => {
      await sql`SELECT pg_advisory_xact_lock(${KEYS_LOCK})`.execute(changes);
      const rows = await changes.selectFrom('secrets').selectAll().forUpdate().execute();
      // Before the new key is created: a secret that cannot be opened aborts the rotation.
      const opened = rows.map((row) => ({ row, value: this.open(row) }));
      const key = this.keyring.renew();
      for (const { row, value } of opened) await reseal(changes, row, value, key);
      audit({ action: 'secret.rotate', after: { rotated: rows.length, key_id: key.id } });
      return { rotated: rows.length, keyId: key.id };
    });
    await this.pruneKeys(done.keyId).catch((error) => Promise.reject(oldKeysRemain(error)));
    return done;
  }

  private async lockKeys(changes: Changes): Promise<void> {
    if (this.keyring.isEmpty()) {
      await sql`SELECT pg_advisory_xact_lock(${KEYS_LOCK})`.execute(changes);
      await this.requireNoOtherKeys(changes);
    } else {
      await sql`SELECT pg_advisory_xact_lock_shared(${KEYS_LOCK})`.execute(changes);
    }
  }

  private openOrNothing(row: SealedSecret): string | undefined {
    try {
      return this.open(row);
    } catch {
      return undefined;
    }
  }

  /** If secrets exist but there is no key, it was probably lost or not configured: a new key would hide that. */
  private async requireNoOtherKeys(changes: Changes): Promise<void> {
    const missing = await this.findMissing(changes);
    if (missing === undefined) return;
    throw new SwitchboardError(
      'conflict',
      `${missing.message} Therefore no new key was created, and the secret was not stored. ${this.keyring.generalAdvice}`,
      { data: { key_ids: missing.keyIds } },
    );
  }

  private async findMissing(queries: Queries): Promise<{ message: string; keyIds: string[] } | undefined> {
    const rows = await queries
      .selectFrom('secrets')
      .innerJoin('projects', 'projects.id', 'secrets.project_id')
      .select(['secrets.key_id', 'secrets.name', 'projects.name as project'])
      .orderBy('projects.name')
      .orderBy('secrets.name')
      .execute();
    const keyIds = [...new Set(rows.map(({ key_id }) => key_id))].filter(
      (id) => this.keyring.find(id) === undefined,
    );
    if (keyIds.length === 0) return undefined;
    const sealed = rows.filter(({ key_id }) => keyIds.includes(key_id));
    const names = sealed.slice(0, MAX_NAMED).map(({ name, project }) => `"${name}" of project "${project}"`);
    if (sealed.length > MAX_NAMED) names.push(`${sealed.length - MAX_NAMED} more`);
    const message = `Some secrets were sealed with keys that are missing (${keyIds.join(', ')}): ${names.join(', ')}.`;
    return { message, keyIds };
  }

  /** An unchanged value needs no restart of servers. */
  private async isKept(changes: Changes, projectId: string, name: string, value: string): Promise<boolean> {
    const row = await changes
      .selectFrom('secrets')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('name', '=', name)
      .forUpdate()
      .executeTakeFirst();
    return row !== undefined && this.openOrNothing(row) === value;
  }

  /** Old keys are removed only if no secret needs them, not even one from a restored backup. */
  private pruneKeys(keyId: string): Promise<void> {
    return this.database.write(async (changes) => {
      await sql`SELECT pg_advisory_xact_lock(${KEYS_LOCK})`.execute(changes);
      const others = await changes
        .selectFrom('secrets')
        .select('name')
        .where('key_id', '!=', keyId)
        .limit(1)
        .execute();
      if (others.length === 0 && this.keyring.current().id === keyId) this.keyring.prune();
    });
  }
}

async function reseal(changes: Changes, row: SealedSecret, value: string, key: Key): Promise<void> {
  await changes
    .updateTable('secrets')
    .set(seal(value, key, placeOf(row)))
    .where('project_id', '=', row.project_id)
    .where('name', '=', row.name)
    .execute();
}

function oldKeysRemain(error: unknown): SwitchboardError {
  return new SwitchboardError(
    'key_file_failed',
    `All secrets are sealed with the new key, but the old keys could not be removed from the key file: ${reasonOf(error)}. Fix that, then rotate again.`,
    { cause: error },
  );
}

function placeOf({ project_id, name }: Placed): string {
  return `${project_id}\n${name}`;
}

function checkSecret(name: string, value: string): void {
  const problems = [];
  if (!NAME.test(name)) {
    problems.push({
      path: 'name',
      message: 'A name consists of at most 128 letters, digits and _, and does not start with a digit.',
    });
  }
  const bytes = Buffer.byteLength(value);
  if (bytes === 0 || bytes > MAX_VALUE_BYTES) {
    problems.push({ path: 'value', message: `A value has 1 to ${MAX_VALUE_BYTES} bytes, not ${bytes}.` });
  }
  if (problems.length === 0) return;
  const message = problems.map((problem) => problem.message).join(' ');
  throw new SwitchboardError('invalid_input', message, { data: { problems } });
}
