import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

export interface TestDatabase extends AsyncDisposable {
  url: string;
  socketUrl: string;
  name: string;
}

/** Open connections are closed at the end of the test. */
export async function freshDatabase(contents: 'migrated' | 'empty' = 'migrated'): Promise<TestDatabase> {
  const { folder, port, user, password, template } = inject('postgres');
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administer(`CREATE DATABASE ${name} TEMPLATE ${contents === 'migrated' ? template : 'template0'}`);
  // The id of the default project identifies an installation, and would be equal in all copies.
  if (contents === 'migrated') await administer('UPDATE kb.projects SET id = gen_random_uuid()', name);
  return {
    url: `postgres://${user}:${password}@127.0.0.1:${port}/${name}`,
    socketUrl: `postgres://${user}@${encodeURIComponent(folder)}:${port}/${name}`,
    name,
    [Symbol.asyncDispose]: () => administer(`DROP DATABASE ${name} WITH (FORCE)`),
  };
}

/** Without a name, the statement runs outside of all test databases. */
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
