import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { connectTo } from '../../test/helpers/database.ts';
import { storeForTests } from '../../test/helpers/store.ts';
import type { CallRecord } from './call-record.ts';
import type { NewRun, RunEnd } from './runs.ts';

const { database, store, newProject } = await storeForTests();

async function newRun(projectId: string, more: Partial<NewRun> = {}): Promise<string> {
  const id = randomUUID();
  await store.runs.create({
    ...{ id, projectId, model: 'a-model', agent: null, system: null, tools: null, input: 'What time is it?' },
    ...more,
  });
  return id;
}

const completed: RunEnd = {
  status: 'completed',
  output: 'It is noon.',
  usage: { input_tokens: 3 },
  steps: 2,
  stopReason: 'end',
  error: null,
};

function call(projectId: string, more: Partial<CallRecord>): CallRecord {
  return {
    ...{ id: randomUUID(), projectId, client: 'chat', method: 'tools/call', server: 'time', replica: 1 },
    ...{ tool: 'now', status: 'ok', durationMs: 1, inputBytes: 2, outputBytes: 3, error: null },
    ...{ input: '{"zone":"UTC"}', output: '{"content":[]}', startedAt: new Date() },
    ...more,
  };
}

/** Backdates the last sign of life of the process. */
async function unseen(id: string, seconds: number): Promise<void> {
  await using client = await connectTo(database.name);
  await client.query('UPDATE kb.agent_runs SET seen_at = now() - make_interval(secs => $2) WHERE id = $1', [
    id,
    seconds,
  ]);
}

describe('runs', () => {
  it('of a removed project are rejected', async () => {
    await expect(newRun(randomUUID())).rejects.toMatchObject({ code: 'unknown_project' });
  });

  it('are stored when they begin, and get their outcome when they end', async () => {
    const projectId = await newProject();
    const id = await newRun(projectId, { system: 'Be brief.', tools: ['time__*'] });
    const begun = await store.runs.get(projectId, id);
    expect(begun).toEqual({
      run: {
        ...{ id, project_id: projectId, status: 'running', model: 'a-model', system: 'Be brief.' },
        ...{ agent: null, principal_id: null },
        ...{ tools: ['time__*'], input: 'What time is it?', output: null, usage: null, steps: 0 },
        ...{ stop_reason: null, error_code: null, error: null, finished_at: null },
        ...{ started_at: expect.any(Date), seen_at: expect.any(Date) },
      },
      messages: [],
      calls: [],
    });
    await store.runs.finish(id, completed);
    // The outcome is final.
    await store.runs.finish(id, { ...completed, status: 'cancelled', output: null });
    expect((await store.runs.get(projectId, id))?.run).toMatchObject({
      ...{ status: 'completed', output: 'It is noon.', usage: { input_tokens: 3 }, steps: 2 },
      ...{ stop_reason: 'end', error: null, finished_at: expect.any(Date) },
    });
  });

  it('record why they failed', async () => {
    const projectId = await newProject();
    const id = await newRun(projectId);
    const error = { code: 'call_timeout', message: 'Too \0late.' };
    const nothing = { output: null, usage: null, stopReason: null };
    await store.runs.finish(id, { ...completed, ...nothing, status: 'failed', error });
    const row = { status: 'failed', error_code: 'call_timeout', error: 'Too late.', output: null };
    expect((await store.runs.get(projectId, id))?.run).toMatchObject(row);
  });

  it('have their messages in order, each once, with their tool calls', async () => {
    const projectId = await newProject();
    const id = await newRun(projectId);
    const asked = {
      id: randomUUID(),
      position: 0,
      role: 'user' as const,
      content: [{ text: 'ü \0 \ud83d' }],
    };
    const said = { id: randomUUID(), position: 1, role: 'assistant' as const, content: [{ text: 'hm' }] };
    await store.runs.addMessages(id, [asked]);
    await store.runs.addMessages(id, [said, asked]);
    const inRun = { runId: id, messageId: said.id, step: 1 };
    const [second, first] = [new Date(), new Date(Date.now() - 1_000)];
    await store.calls.record([
      call(projectId, { ...inRun, tool: 'second', startedAt: second }),
      call(projectId, { ...inRun, tool: 'first', startedAt: first }),
      call(projectId, { tool: 'of nobody' }),
    ]);
    const details = (await store.runs.get(projectId, id))!;
    expect(details.messages).toMatchObject([
      { id: asked.id, run_id: id, position: 0, role: 'user', content: [{ text: 'ü  \ufffd' }] },
      { id: said.id, run_id: id, position: 1, role: 'assistant', content: [{ text: 'hm' }] },
    ]);
    expect(details.calls.map(({ tool_name, message_id, step }) => [tool_name, message_id, step])).toEqual([
      ['first', said.id, 1],
      ['second', said.id, 1],
    ]);
    expect(details.calls[0]).toMatchObject({ run_id: id, input: { zone: 'UTC' }, output: { content: [] } });
  });

  it('are paged newest first, each once, even if many have the same time', async () => {
    const projectId = await newProject();
    const ids = await Promise.all(Array.from({ length: 7 }, () => newRun(projectId)));
    await newRun(await newProject());
    await using client = await connectTo(database.name);
    await client.query(
      `UPDATE kb.agent_runs SET started_at = date_trunc('minute', now()) - make_interval(secs => n / 3)
       FROM unnest($1::uuid[]) WITH ORDINALITY AS listed (id, n) WHERE agent_runs.id = listed.id`,
      [ids],
    );
    const seen = [];
    let cursor: string | undefined;
    do {
      const page = await store.runs.list(projectId, { limit: 3, cursor });
      seen.push(...page.runs);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(seen.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    const times = seen.map(({ started_at }) => started_at.getTime());
    expect(times).toEqual(times.toSorted((left, right) => right - left));
    await expect(store.runs.list(projectId, { limit: 1, cursor: 'nonsense' })).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });

  it('whose process is gone are shown as failed; live ones continue', async () => {
    const projectId = await newProject();
    const [gone, here, done] = [await newRun(projectId), await newRun(projectId), await newRun(projectId)];
    await store.runs.finish(done, completed);
    for (const id of [gone, here, done]) await unseen(id, 120);
    await store.runs.touch([here]);
    const statuses = (await store.runs.list(projectId, { limit: 10 })).runs.map(({ id, status }) => [
      id,
      status,
    ]);
    expect(Object.fromEntries(statuses)).toEqual({
      [gone]: 'failed',
      [here]: 'running',
      [done]: 'completed',
    });
    const { run } = (await store.runs.get(projectId, gone))!;
    expect(run).toMatchObject({ status: 'failed', error: expect.stringContaining('in the middle') });
    expect(run.finished_at).toEqual(run.seen_at);
  });

  it('whose process is gone are marked failed in the table, and continue if it comes back', async () => {
    const projectId = await newProject();
    const [gone, back, late] = [await newRun(projectId), await newRun(projectId), await newRun(projectId)];
    for (const id of [gone, back, late]) await unseen(id, 120);
    const here = await newRun(projectId);
    await store.runs.failLost();
    await using client = await connectTo(database.name);
    const written = async (...ids: string[]) => {
      const { rows } = await client.query('SELECT id, status FROM kb.agent_runs WHERE id = ANY($1)', [ids]);
      const statuses = new Map(rows.map(({ id, status }) => [id, status]));
      return ids.map((id) => statuses.get(id));
    };
    expect(await written(gone, back, late, here)).toEqual(['failed', 'failed', 'failed', 'running']);
    await store.runs.touch([back]);
    await store.runs.finish(late, completed);
    expect(await written(gone, back, late)).toEqual(['failed', 'running', 'completed']);
    expect((await store.runs.get(projectId, back))!.run).toMatchObject({ error: null, finished_at: null });
  });

  it('are found in their project only, and by an id only', async () => {
    const projectId = await newProject();
    const id = await newRun(projectId);
    expect(await store.runs.get(await newProject(), id)).toBe(undefined);
    expect(await store.runs.get(projectId, randomUUID())).toBe(undefined);
    expect(await store.runs.get(projectId, 'no id')).toBe(undefined);
  });

  it('can be limited to those of a principal', async () => {
    const projectId = await newProject();
    const [own, other, old] = [
      await newRun(projectId, { principalId: 'me' }),
      await newRun(projectId, { principalId: 'you' }),
      await newRun(projectId),
    ];
    const ids = async (principalId?: string) =>
      (await store.runs.list(projectId, { limit: 10, principalId })).runs.map(({ id }) => id).toSorted();
    expect(await ids('me')).toEqual([own]);
    expect(await ids()).toEqual([own, other, old].toSorted());
    const me = { principalId: 'me' };
    expect((await store.runs.get(projectId, own, me))?.run).toMatchObject({ principal_id: 'me' });
    expect(await store.runs.get(projectId, other, me)).toBe(undefined);
    expect(await store.runs.get(projectId, old, me)).toBe(undefined);
    expect((await store.runs.get(projectId, other))?.run).toMatchObject({ principal_id: 'you' });
  });

  it('of a deleted project accept no messages', async () => {
    const projectId = await newProject();
    const id = await newRun(projectId);
    await store.projects.delete(projectId, undefined);
    await store.runs.addMessages(id, [{ id: randomUUID(), position: 0, role: 'user', content: [] }]);
    await store.runs.finish(id, completed);
    expect(await store.runs.get(projectId, id)).toBe(undefined);
  });

  it('are deleted with their contents after the retention time of their project', async () => {
    const [month, forever] = await Promise.all([newProject(), newProject()]);
    await store.projects.change(forever, { retention_days: null }, undefined);
    const [old, kept, fresh] = [await newRun(month), await newRun(forever), await newRun(month)];
    await using client = await connectTo(database.name);
    await client.query(
      "UPDATE kb.agent_runs SET started_at = now() - interval '31 days' WHERE id = ANY($1)",
      [[old, kept]],
    );
    await store.runs.addMessages(old, [{ id: randomUUID(), position: 0, role: 'user', content: [] }]);
    expect(await store.deleteExpired()).toBe(1);
    expect(await store.runs.get(month, old)).toBe(undefined);
    expect((await client.query('SELECT FROM kb.agent_run_messages WHERE run_id = $1', [old])).rowCount).toBe(
      0,
    );
    for (const [project, id] of [
      [forever, kept],
      [month, fresh],
    ] as const) {
      expect((await store.runs.get(project, id))?.run.id).toBe(id);
    }
  });
});
