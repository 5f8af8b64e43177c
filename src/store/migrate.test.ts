import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { administer, connectTo, freshDatabase } from '../../test/helpers/database.ts';
import { openTestStore } from '../../test/helpers/store.ts';
import { type Migration, migrate, migrations } from './migrate.ts';

function migration(number: number, sql: string): Migration {
  return { number, name: `step ${number}`, sql, checksum: createHash('sha256').update(sql).digest('hex') };
}

const steps = [migration(1, 'CREATE TABLE kb.one ()'), migration(2, 'CREATE TABLE kb.two ()')];

describe('migrations', () => {
  it('are applied once each, in order', async () => {
    await using database = await freshDatabase('empty');
    await using client = await connectTo(database.name);
    await migrate(client, steps.slice(0, 1));
    await migrate(client, steps);
    await migrate(client, steps);
    const { rows } = await client.query('SELECT number, name FROM kb.migrations ORDER BY number');
    expect(rows).toEqual([
      { number: 1, name: 'step 1' },
      { number: 2, name: 'step 2' },
    ]);
  });

  it('are applied all or not at all', async () => {
    await using database = await freshDatabase('empty');
    await using client = await connectTo(database.name);
    await expect(migrate(client, [...steps, migration(3, 'CREATE nonsense')])).rejects.toThrow('nonsense');
    const { rows } = await client.query("SELECT to_regnamespace('kb') AS found");
    expect(rows).toEqual([{ found: null }]);
  });

  it('are rejected if one has changed', async () => {
    await using database = await freshDatabase('empty');
    await using client = await connectTo(database.name);
    await migrate(client, steps);
    const changed = [steps[0]!, migration(2, 'CREATE TABLE kb.another ()')];
    await expect(migrate(client, changed)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('Migration 2 (step 2) of the database differs from the one'),
    });
  });

  it('are rejected by a program that is older than the database', async () => {
    await using database = await freshDatabase('empty');
    await using client = await connectTo(database.name);
    await migrate(client, steps);
    await expect(migrate(client, steps.slice(0, 1))).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('it has migration 2 (step 2), and this version has 1'),
    });
  });

  it('succeed for concurrent starts on an empty database', async () => {
    await using database = await freshDatabase('empty');
    const stores = await Promise.all([1, 2, 3, 4].map(() => openTestStore({ url: database.url })));
    for (const store of stores) {
      expect((await store.projects.all()).map(({ project }) => project.name)).toEqual(['default']);
      await store[Symbol.asyncDispose]();
    }
  });

  it('[P1] make the transport of servers an enum, and keep existing servers', async () => {
    await using database = await freshDatabase('empty');
    await using client = await connectTo(database.name);
    await migrate(client, migrations.slice(0, 4));
    const transports = ['stdio', 'sse', 'http'];
    for (const transport of transports) {
      await client.query(
        `INSERT INTO kb.project_mcp_servers (project_id, name, transport, config)
         SELECT id, $1, $1, '{}' FROM kb.projects`,
        [transport],
      );
    }
    await migrate(client);
    const { rows } = await client.query(
      `SELECT name, transport::text, pg_typeof(transport)::text AS type, version
       FROM kb.project_mcp_servers AS server ORDER BY server.transport`,
    );
    expect(rows).toEqual(
      transports.map((name) => ({
        name,
        transport: name,
        type: 'kb.mcp_transport',
        version: expect.anything(),
      })),
    );
    const change =
      "UPDATE kb.project_mcp_servers SET transport = 'http' WHERE name = 'sse' RETURNING version";
    expect((await client.query(change)).rows).toEqual([
      { version: expect.toSatisfy((version) => Number(version) === 2) },
    ]);
    await expect(
      client.query("UPDATE kb.project_mcp_servers SET transport = 'carrier-pigeon'"),
    ).rejects.toThrow('invalid input value for enum kb.mcp_transport');
  });

  it('add access and the audit log, and keep what was there before', async () => {
    await using database = await freshDatabase('empty');
    await using client = await connectTo(database.name);
    await migrate(client, migrations.slice(0, 7));
    await client.query(`
      INSERT INTO kb.project_mcp_servers (project_id, name, transport, config)
        SELECT id, 'box', 'stdio', '{"command": "none"}' FROM kb.projects;
      INSERT INTO kb.agent_runs (project_id, status, model) SELECT id, 'completed', 'a-model' FROM kb.projects;
      INSERT INTO kb.agent_run_tool_calls (project_id, run_id, method, status, duration_ms)
        SELECT project_id, id, 'tools/call', 'ok', 1 FROM kb.agent_runs
    `);
    await migrate(client);
    await using store = await openTestStore({ url: database.url });
    const [state] = await store.projects.all();
    const { id } = state!.project;
    expect(state).toMatchObject({ project: { name: 'default', version: 1 }, servers: [{ name: 'box' }] });
    const { runs } = await store.runs.list(id, { limit: 10 });
    expect(runs).toMatchObject([{ model: 'a-model', principal_id: null }]);
    const { calls } = await store.calls.list(id, { limit: 10 });
    expect(calls).toMatchObject([{ run_id: runs[0]!.id, principal_id: null, principal_name: null }]);
    const nobody = { principals: [], secrets: [], members: [], grants: [], rules: [], limits: [] };
    expect(await store.access.state()).toEqual(nobody);
    expect(await store.audit.verify()).toMatchObject({ entries: 0 });
    await store.access.createKey({ name: 'ci', projectId: id, role: 'caller', expiresAt: null });
    expect(await store.audit.verify()).toMatchObject({ entries: 1, firstSeq: 1 });
  });

  it('report a missing right to create a schema, and need none if the schema exists', async () => {
    await using database = await freshDatabase('empty');
    const role = `role_${database.name}`;
    await administer(`CREATE ROLE ${role} LOGIN PASSWORD 'hunter2'`);
    try {
      const url = new URL(database.url);
      url.username = role;
      url.password = 'hunter2';
      await expect(openTestStore({ url: url.href })).rejects.toMatchObject({
        code: 'invalid_config',
        message: expect.stringContaining(`GRANT CREATE ON DATABASE ${database.name} TO ${role}`),
      });
      await administer(`CREATE SCHEMA kb AUTHORIZATION ${role}`, database.name);
      await using store = await openTestStore({ url: url.href });
      expect(await store.projects.all()).toHaveLength(1);
    } finally {
      await administer(`DROP OWNED BY ${role}`, database.name);
      await administer(`DROP ROLE ${role}`);
    }
  });

  it('are rejected by a database server that is too old', async () => {
    await using database = await freshDatabase('empty');
    await using client = await connectTo(database.name);
    await expect(migrate(client, steps, 99)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(
        /^The database server is PostgreSQL \d+.*; Switchboard needs 99 or newer\.$/,
      ),
    });
  });

  it('are numbered from 1 without gaps', () => {
    expect(migrations.map(({ number }) => number)).toEqual(migrations.map((_, index) => index + 1));
  });
});
