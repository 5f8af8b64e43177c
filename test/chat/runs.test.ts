import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { RunList } from '../../src/api/chat-views.ts';
import { API_KEY, calls, resultsIn, says } from '../agent/messages-api.ts';
import { setUp } from '../helpers/set-up.ts';
import { ChatSite, eventOf } from './scene.ts';

let scene: ChatSite;

setUp(async (use) => {
  scene = use(await ChatSite.start());
});

describe('runs', () => {
  it('[P9] have every message, and every tool call with its message and step', async () => {
    const talk = await scene.project([
      calls(
        { name: 'echo', input: { text: 'one' } },
        { name: 'echo', input: { text: 'two' }, id: 'toolu_b' },
      ),
      calls({ name: 'environment', input: { name: 'NOTHING' } }),
      says('Done.'),
    ]);
    const chat = await talk.chat('Go!', { system: 'Be brief.', tools: ['echo', 'env*'] });
    const run = await talk.run(chat.run_id);
    expect(run).toMatchObject({
      ...{ id: chat.run_id, status: 'completed', model: talk.model, system: 'Be brief.' },
      ...{ tools: ['echo', 'env*'], input: 'Go!', output: 'Done.', stop_reason: 'end', steps: 3 },
      ...{ usage: chat.usage, error: null, finished_at: expect.any(String) },
    });
    expect(run.messages.map(({ role, content }) => [role, content.map(({ type }) => type).join()])).toEqual([
      ['user', 'text'],
      ['assistant', 'tool_call,tool_call'],
      ['user', 'tool_result,tool_result'],
      ['assistant', 'tool_call'],
      ['user', 'tool_result'],
      ['assistant', 'text'],
    ]);
    const [, first, , second] = run.messages;
    const inRun = { run_id: run.id, client: 'chat', method: 'tools/call', server: 'box', replica: 1 };
    const text = (words: string) => ({ content: [{ type: 'text', text: words }] });
    // The calls of one step run concurrently.
    const orderOf = ({ step, input }: (typeof run.tool_calls)[number]) => `${step} ${JSON.stringify(input)}`;
    const inOrder = run.tool_calls.toSorted((left, right) => (orderOf(left) < orderOf(right) ? -1 : 1));
    expect(inOrder).toMatchObject([
      { ...inRun, message_id: first!.id, step: 1, input: { text: 'one' }, output: text('one') },
      { ...inRun, message_id: first!.id, step: 1, input: { text: 'two' }, output: text('two') },
      { ...inRun, message_id: second!.id, step: 2, tool: 'environment', status: 'ok' },
    ]);
    const rows = await scene.site.query(
      'SELECT step, message_id FROM kb.agent_run_tool_calls WHERE run_id = $1 ORDER BY step',
      [run.id],
    );
    expect(rows.map(({ step }) => step)).toEqual([1, 1, 2]);
    // They are listed among the calls of clients too.
    const { calls: all } = await talk.project.done<{ calls: { run_id: string }[] }>('GET /calls');
    expect(all.map(({ run_id }) => run_id)).toEqual([run.id, run.id, run.id]);
  });

  it('are listed in pages, newest first, only in their project', async () => {
    const talk = await scene.project(() => says('Yes.'));
    const ids: string[] = [];
    for (const question of ['one', 'two', 'three']) ids.unshift((await talk.chat(question)).run_id);
    const page = await talk.project.done<RunList>('GET /runs?limit=2');
    expect(page.runs.map(({ id, input }) => [id, input])).toEqual([
      [ids[0], 'three'],
      [ids[1], 'two'],
    ]);
    const rest = await talk.project.done<RunList>(`GET /runs?limit=2&cursor=${page.next_cursor}`);
    expect(rest).toMatchObject({ runs: [{ id: ids[2], output: 'Yes.' }], next_cursor: null });
    const other = await scene.site.project();
    for (const id of [ids[0], 'nonsense']) {
      expect((await other.ask(`GET /runs/${id}`)).body.error).toMatchObject({ code: 'not_found' });
    }
    for (const query of ['limit=0', 'limit=101', 'cursor=x', 'x=y']) {
      expect((await talk.project.ask(`GET /runs?${query}`)).status).toBe(400);
    }
  });

  it('never show a secret', async () => {
    const secret = 'a-secret-that-nobody-shall-see';
    const talk = await scene.project([
      calls({ name: 'environment', input: { name: 'TOKEN', note: secret } }),
      says(`It is ${secret}.`),
    ]);
    await talk.project.done('PUT /secrets/TOKEN', { value: secret });
    await talk.project.add('keeper', { fixture: 'toolbox', env: { TOKEN: `\${TOKEN}` } });
    const names = ['box__environment', 'keeper__environment'];
    const again = scene.talk(talk.project, [
      calls({ name: names[1]!, input: { name: 'TOKEN', note: secret } }),
      says(`It is ${secret}.`),
    ]);
    const chat = await again.chat(`Is it ${secret}?`, { system: `Never say ${secret}.`, tools: names });
    // The model receives the secret, and the caller sees its answer unchanged.
    expect(resultsIn(again.requests[1]!)).toMatchObject([{ content: [{ text: secret }] }]);
    expect(chat.text).toBe(`It is ${secret}.`);
    const run = await again.run(chat.run_id);
    expect(run).toMatchObject({ input: 'Is it ***?', output: 'It is ***.', system: 'Never say ***.' });
    expect(run.tool_calls).toMatchObject([
      { input: { note: '***' }, output: { content: [{ text: '***' }] } },
    ]);
    for (const table of ['agent_runs', 'agent_run_messages', 'agent_run_tool_calls']) {
      const rows = await scene.site.query<{ row: string }>(`SELECT t::text AS row FROM kb.${table} t`);
      expect(rows.length).toBeGreaterThan(0);
      expect(rows.filter(({ row }) => row.includes(secret) || row.includes(API_KEY))).toEqual([]);
    }
  });

  it('omit images and large content with a note', async () => {
    const data = Buffer.alloc(3_000, 7).toString('base64');
    const long = 'x'.repeat(300_000);
    const resource = { uri: 'file:///a.pdf', mimeType: 'application/pdf', blob: data };
    const result = {
      content: [
        { type: 'image', mimeType: 'image/png', data },
        { type: 'resource', resource },
      ],
    };
    const talk = await scene.project([
      calls({ name: 'give', input: { result } }, { name: 'echo', input: { text: long }, id: 'toolu_b' }),
      says('Seen.'),
    ]);
    await talk.project.add('giver', { fixture: 'returns-given-result' });
    const chat = await talk.chat('Go!');
    const { messages, tool_calls: recorded } = await talk.run(chat.run_id);
    expect(messages[2]!.content[0]).toMatchObject({
      content: [
        { type: 'image', media_type: 'image/png', omitted: expect.stringContaining('4000') },
        { type: 'document', media_type: 'application/pdf', omitted: expect.stringContaining('4000') },
      ],
    });
    expect(messages[1]!.content[1]).toMatchObject({ input: { omitted: expect.any(String) } });
    expect(recorded.find(({ tool }) => tool === 'echo')).toMatchObject({
      input: { omitted: expect.any(String) },
      input_bytes: expect.any(Number),
    });
    const { input: _, ...given } = recorded.find(({ tool }) => tool === 'give')!;
    expect(given.output).toEqual({
      content: [
        { type: 'image', mimeType: 'image/png', omitted: '4000 characters of base64 are not kept' },
        {
          type: 'resource',
          resource: {
            ...{ uri: 'file:///a.pdf', mimeType: 'application/pdf' },
            omitted: '4000 characters of base64 are not kept',
          },
        },
      ],
    });
    // The caller gets everything.
    expect(chat.messages[1]).toMatchObject({
      content: [
        {
          content: [
            { type: 'image', media_type: 'image/png', data },
            { type: 'document', media_type: 'application/pdf', data },
          ],
        },
        { type: 'tool_result' },
      ],
    });
  });

  it('are cancelled with the call in flight when the caller disconnects', async () => {
    const talk = await scene.project(() => calls({ name: 'wait' }));
    const stream = await talk.stream('Wait!');
    const id = String((await eventOf(stream, 'run')).run_id);
    const who = talk.project.who('box');
    await scene.site.witness.sees(who, 'waiting');
    expect(await talk.run(id)).toMatchObject({ status: 'running', finished_at: null, steps: 0 });
    await stream.cut();
    const run = await talk.over(id);
    expect(run).toMatchObject({ status: 'cancelled', error: { message: expect.any(String) }, steps: 1 });
    expect(run.tool_calls).toMatchObject([{ tool: 'wait', status: 'cancelled', step: 1 }]);
    await scene.site.witness.sees(who, 'notifications/cancelled');
    expect(talk.requests).toHaveLength(1);
  });

  it('are cancelled during a response of the model too', async () => {
    let gone: Promise<unknown> | undefined;
    const talk = await scene.project(({ gone: signal }) => {
      gone = new Promise((resolve) => signal.addEventListener('abort', resolve));
      return new Promise(() => {});
    });
    const stream = await talk.stream('Hello?');
    const id = String((await eventOf(stream, 'run')).run_id);
    await talk.asked(1);
    await stream.cut();
    await gone;
    expect(await talk.over(id)).toMatchObject({ status: 'cancelled', steps: 0 });
  });

  it('end when their project is removed', async () => {
    const talk = await scene.project(() => calls({ name: 'wait' }));
    const stream = await talk.stream('Wait!');
    await scene.site.witness.sees(talk.project.who('box'), 'waiting');
    await talk.project.done('DELETE ');
    const { error } = (await eventOf(stream, 'error')) as { error: object };
    expect(error).toMatchObject({ code: 'unknown_project' });
  });

  it('of a killed process are marked as failed when the next one starts', async () => {
    const talk = await scene.project([]);
    const id = randomUUID();
    await scene.site.restart(() =>
      scene.site.query(
        `INSERT INTO kb.agent_runs (id, project_id, status, model, seen_at)
         VALUES ($1, $2, 'running', 'claude-x', now() - interval '2 minutes')`,
        [id, talk.project.id],
      ),
    );
    await expect
      .poll(() => scene.site.query('SELECT status, error_code FROM kb.agent_runs WHERE id = $1', [id]))
      .toEqual([{ status: 'failed', error_code: 'internal' }]);
  });

  it('end when Switchboard stops, and say so afterwards', async () => {
    const talk = await scene.project(() => calls({ name: 'wait' }));
    const stream = await talk.stream('Wait!');
    const id = String((await eventOf(stream, 'run')).run_id);
    await scene.site.witness.sees(talk.project.who('box'), 'waiting');
    await scene.site.restart();
    const run = await talk.run(id);
    expect(run).toMatchObject({ status: 'cancelled', error: { message: 'Switchboard was stopped.' } });
    expect(run.tool_calls).toMatchObject([{ tool: 'wait', status: 'cancelled' }]);
  });
});
