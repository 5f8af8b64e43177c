import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { connectTo } from '../../test/helpers/database.ts';
import { storeForTests } from '../../test/helpers/store.ts';
import type { CallRecord } from './call-record.ts';
import type { CallFilter } from './calls.ts';

const { database, store, newProject } = await storeForTests();

function call(projectId: string, more: Partial<CallRecord> = {}): CallRecord {
  return {
    id: randomUUID(),
    projectId,
    client: 'a test 1.0',
    method: 'tools/call',
    server: 'time',
    replica: 1,
    tool: 'now',
    status: 'ok',
    durationMs: 1.25,
    inputBytes: 10,
    outputBytes: 3_000_000_000,
    error: null,
    input: null,
    output: null,
    startedAt: new Date(),
    ...more,
  };
}

const chinese = (length: number) => Array.from({ length }, () => randomInt(0x4e00, 0x9fa5));

describe('call records', () => {
  it('contain what was recorded', async () => {
    const id = await newProject();
    const principal = { id: 'a key', name: 'ci \0' };
    const record = call(id, {
      ...{ principal, status: 'error', error: { code: 'call_timeout', message: 'Too late.' } },
      ...{ input: '{"zone":"UTC"}', output: '[1,2.5,"ü"]' },
    });
    await store.calls.record([record]);
    const { calls, nextCursor } = await store.calls.list(id, { limit: 10 });
    expect(nextCursor).toBe(undefined);
    expect(calls).toEqual([
      {
        ...{ id: record.id, project_id: id, run_id: null, message_id: null, step: null },
        ...{ principal_id: 'a key', principal_name: 'ci ' },
        ...{ client: 'a test 1.0', method: 'tools/call', server_name: 'time', replica: 1, tool_name: 'now' },
        ...{ status: 'error', duration_ms: 1.25, input_bytes: 10, output_bytes: 3_000_000_000 },
        ...{ error_code: 'call_timeout', error: 'Too late.' },
        ...{ input: { zone: 'UTC' }, output: [1, 2.5, 'ü'], created_at: record.startedAt },
      },
    ]);
  });

  it('are the same if many are written as columns', async () => {
    const [id, other, gone] = [await newProject(), await newProject(), await newProject()];
    await store.projects.delete(gone, undefined);
    const kind = { client: 'a\u0000 test', method: 'tools/call', server: 'time', replica: 1, tool: 'now' };
    const startedAt = Date.now() - 1_000;
    const calls = {
      idPrefix: `${randomUUID().slice(0, -3)}`,
      kinds: [
        { ...kind, projectId: id, principal: { id: 'a key', name: 'ci \0', other: 'unused' } },
        { ...kind, projectId: other, tool: 'file:///"ü\'' },
        { ...kind, projectId: gone },
        { ...kind, projectId: id, server: 'zone', replica: null },
      ],
      columns: {
        kind: Float64Array.of(0, 1, 2, 3),
        status: Float64Array.of(0, 1, 0, 2),
        durationMs: Float64Array.of(0.125, 1_234.5, 0, 0),
        inputBytes: Float64Array.of(0, 200, 1, 2),
        outputBytes: Float64Array.of(1, 3_000_000_000, 1, 0),
        startedAt: Float64Array.of(startedAt, startedAt + 1, startedAt, startedAt + 2),
      },
    };
    await store.calls.recordPlain(calls);
    await store.calls.recordPlain(calls);
    const rows = async (project: string) => (await store.calls.list(project, { limit: 10 })).calls;
    const nothing = { error_code: null, error: null, input: null, output: null, run_id: null };
    expect(await rows(id)).toMatchObject([
      {
        ...{
          id: `${calls.idPrefix}004`,
          server_name: 'zone',
          replica: null,
          status: 'cancelled',
          ...nothing,
        },
        ...{ created_at: new Date(startedAt + 2), principal_id: null, principal_name: null },
      },
      {
        ...{ id: `${calls.idPrefix}001`, server_name: 'time', replica: 1, status: 'ok', duration_ms: 0.125 },
        ...{ input_bytes: 0, output_bytes: 1, created_at: new Date(startedAt), ...nothing },
        ...{ principal_id: 'a key', principal_name: 'ci ' },
      },
    ]);
    expect(await rows(other)).toMatchObject([
      {
        ...{ id: `${calls.idPrefix}002`, tool_name: 'file:///"ü\'', status: 'tool_error' },
        ...{ duration_ms: 1_234.5, input_bytes: 200, output_bytes: 3_000_000_000 },
      },
    ]);
  });

  it('are stored once, even if they are written twice', async () => {
    const id = await newProject();
    const records = [call(id), call(id)];
    await store.calls.record(records);
    await store.calls.record([...records, call(id)]);
    expect((await store.calls.list(id, { limit: 10 })).calls).toHaveLength(3);
    await store.calls.record([]);
  });

  it('of a removed project, or with invalid values, do not affect the others', async () => {
    const id = await newProject();
    const gone = await newProject();
    await store.projects.delete(gone, undefined);
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    await store.calls.record([
      call(gone),
      call(id, { input: '"\\u0000a\\ud800"', client: 'NUL \0', tool: 'half \ud800' }),
      call(id, { input: 'not JSON', output: '1e999999' }),
      call(id, { input: deep, error: { code: 'internal', message: '\0' } }),
      call(id, { runId: randomUUID(), messageId: randomUUID(), step: 2 }),
    ]);
    const { calls } = await store.calls.list(id, { limit: 10 });
    expect(calls).toHaveLength(4);
    expect(calls).toContainEqual(
      expect.objectContaining({ input: 'a\ufffd', client: 'NUL ', tool_name: 'half \ufffd' }),
    );
    expect(calls).toContainEqual(expect.objectContaining({ run_id: null, step: 2 }));
  });

  it.each([
    ['Latin', (length: number) => randomBytes(length).toString('base64').slice(0, length), 1_024],
    // Three bytes each and no repetition, because index entries are compressed.
    ['Chinese', (length: number) => String.fromCodePoint(...chinese(length)), 682],
  ])('have names that are truncated if they are too long: %s', async (_script, make, kept) => {
    const id = await newProject();
    const [client, method, server, tool] = [make(9_000), make(9_000), make(9_000), make(9_000)];
    const long = { client, method, server, tool };
    await store.calls.record([call(id, long), call(id), call(id, { ...long, input: '{}' })]);
    const { calls } = await store.calls.list(id, { limit: 10, server, tool });
    const row = {
      client: client.slice(0, kept),
      method: method.slice(0, kept),
      server_name: server.slice(0, kept),
      tool_name: tool.slice(0, kept),
    };
    expect(calls).toEqual([expect.objectContaining(row), expect.objectContaining(row)]);
    expect((await store.calls.list(id, { limit: 10 })).calls).toHaveLength(3);
  });

  it('that are slow to write do not make the database look unavailable', async () => {
    const id = await newProject();
    await using client = await connectTo(database.name);
    await client.query('BEGIN; LOCK TABLE kb.agent_run_tool_calls');
    const recording = store.calls.record([call(id)]);
    recording.catch(() => {});
    const cancel = `SELECT pg_cancel_backend(pid) AS done FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await expect.poll(async () => (await client.query(cancel)).rows).toEqual([{ done: true }]);
    await expect(recording).rejects.toMatchObject({
      code: 'internal',
      kind: { retryable: false },
      message: expect.stringContaining('did not finish in time: canceling statement'),
    });
    await client.query('ROLLBACK');
    expect(store.told).toEqual([]);
  });

  it('are written while projects are deleted', async () => {
    const kept = await newProject();
    const ids = await Promise.all(Array.from({ length: 10 }, newProject));
    await Promise.all([
      ...ids.map((id) => store.projects.delete(id, undefined)),
      ...ids.map((id) => store.calls.record([call(id), call(kept), call(id)])),
    ]);
    expect((await store.calls.list(kept, { limit: 100 })).calls).toHaveLength(10);
  });

  it('are written fast', async () => {
    const id = await newProject();
    const records = Array.from({ length: 1_000 }, () => call(id, { input: '{"a":1}' }));
    const before = performance.now();
    await store.calls.record(records);
    expect(performance.now() - before).toBeLessThan(2_000);
  });

  it('are paged newest first, each once, even if many have the same time', async () => {
    const id = await newProject();
    const times = [0, 0, 0, 1, 1, 2, 3, 3, 3, 3].map(
      (second) => new Date(1_700_000_000_123 + second * 1_000),
    );
    const records = times.map((startedAt) => call(id, { startedAt }));
    await store.calls.record(records);
    const seen = [];
    let cursor: string | undefined;
    do {
      const page = await store.calls.list(id, { limit: 3, cursor });
      seen.push(...page.calls);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(new Set(seen.map((each) => each.id)).size).toBe(10);
    expect(seen.map(({ created_at }) => created_at)).toEqual(times.toReversed());
  });

  it('are filtered by server, tool, status, principal and time', async () => {
    const id = await newProject();
    const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 12, minute));
    const local = { id: 'local', name: 'local user' };
    const ci = { id: 'a key', name: 'ci' };
    await store.calls.record([
      call(id, { server: 'a', tool: 'x', principal: local, startedAt: at(1) }),
      call(id, { server: 'a', tool: 'y', status: 'timeout', principal: ci, startedAt: at(2) }),
      call(id, { server: 'b', tool: 'x', status: 'tool_error', startedAt: at(3) }),
      call(id, { server: null, tool: null, method: 'resources/read', startedAt: at(4) }),
    ]);
    const minutes = async (filter: Omit<CallFilter, 'limit'>) =>
      (await store.calls.list(id, { limit: 10, ...filter })).calls.map(({ created_at }) =>
        created_at.getUTCMinutes(),
      );
    expect(await minutes({})).toEqual([4, 3, 2, 1]);
    expect(await minutes({ server: 'a' })).toEqual([2, 1]);
    expect(await minutes({ tool: 'x' })).toEqual([3, 1]);
    expect(await minutes({ status: 'ok' })).toEqual([4, 1]);
    expect(await minutes({ status: 'timeout' })).toEqual([2]);
    expect(await minutes({ principal: 'local' })).toEqual([1]);
    expect(await minutes({ principal: ci.id })).toEqual([2]);
    expect(await minutes({ principal: 'another' })).toEqual([]);
    expect(await minutes({ since: at(2), until: at(4) })).toEqual([3, 2]);
    expect(await minutes({ server: 'a', tool: 'x', status: 'ok', since: at(1) })).toEqual([1]);
  });

  it.each(['', 'nonsense', Buffer.from('2026-99-01T00:00:00.000Z x').toString('base64url')])(
    'are not found with an invalid cursor: %j',
    async (cursor) => {
      const list = async () => store.calls.list(await newProject(), { limit: 1, cursor });
      await expect(list()).rejects.toMatchObject({
        code: 'invalid_input',
        data: { problems: [{ path: 'cursor' }] },
      });
    },
  );

  it('are looked up by indexes', async () => {
    await using client = await connectTo(database.name);
    await client.query('SET enable_seqscan = off');
    await client.query('SET enable_sort = off');
    for (const [condition, index] of [
      ['true', 'newest'],
      ["server_name = 'a'", 'of_server'],
      ["tool_name = 'a'", 'of_tool'],
      ["status = 'error' AND status <> 'ok'", 'not_ok'],
    ]) {
      const { rows } = await client.query(
        `EXPLAIN SELECT * FROM kb.agent_run_tool_calls WHERE project_id = '${randomUUID()}' AND ${condition}
         ORDER BY created_at DESC, id DESC LIMIT 10`,
      );
      expect(JSON.stringify(rows)).toContain(`agent_run_tool_calls_${index}`);
    }
  });

  it('are deleted after the retention time of their project', async () => {
    const [month, forever] = await Promise.all([newProject(), newProject()]);
    await store.projects.change(forever, { retention_days: null }, undefined);
    const old = new Date(Date.now() - 31 * 24 * 3_600_000);
    const batch = (id: string) => Array.from({ length: 5_001 }, () => call(id, { startedAt: old }));
    await store.calls.record([...batch(month), call(month), call(forever, { startedAt: old })]);
    await store.deleteExpired();
    expect((await store.calls.list(month, { limit: 10 })).calls).toHaveLength(1);
    expect((await store.calls.list(forever, { limit: 10 })).calls).toHaveLength(1);
    expect(await store.deleteExpired()).toBe(0);
  });
});
