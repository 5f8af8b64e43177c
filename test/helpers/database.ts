import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

export interface TestDatabase extends AsyncDisposable {
  url: string;
  /** The same over the Unix socket. */
  socketUrl: string;
  name: string;
}

/** A new database for a test, migrated or empty. Open connections are closed at the end. */
export async function freshDatabase(contents: 'migrated' | 'empty' = 'migrated'): Promise<TestDatabase> {
  const { folder, port, user, password, template } = inject('postgres');
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administer(`CREATE DATABASE ${name} TEMPLATE ${contents === 'migrated' ? template : 'template0'}`);
  // An installation is known by the id of its default project, and takes what has the same id for its own.
  if (contents === 'migrated') await administer('UPDATE kb.projects SET id = gen_random_uuid()', name);
  return {
    url: `postgres://${user}:${password}@127.0.0.1:${port}/${name}`,
    socketUrl: `postgres://${user}@${encodeURIComponent(folder)}:${port}/${name}`,
    name,
    [Symbol.asyncDispose]: () => administer(`DROP DATABASE ${name} WITH (FORCE)`),
  };
}

/** Runs a statement in a database of the shared server; without a name, beside all of them. */
export async function administer(statement: string, database = 'postgres'): Promise<void> {
  await using client = await connectTo(database);
  await client.query(statement);
}

export async function connectTo(database: string): Promise<pg.Client & AsyncDisposable> {
  const { folder, port, user } = inject('postgres');
  const client = new pg.Client({ host: folder, port, user, database });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}
