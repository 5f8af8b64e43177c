import { describe, expect, it } from 'vitest';
import type { ChatView } from '../../src/api/chat-views.ts';
import { API_KEY, calls, resultsIn, says } from '../agent/messages-api.ts';
import { setUp } from '../helpers/set-up.ts';
import { ChatSite, eventOf } from './scene.ts';

let scene: ChatSite;

setUp(async (use) => {
  scene = use(await ChatSite.start());
});

const echo = (text: string, id?: string) => ({ name: 'echo', input: { text }, ...(id && { id }) });
const usage = { input_tokens: 20, output_tokens: 10, cache_read_tokens: 4, cache_write_tokens: 6 };

describe('a chat', () => {
  it('[P9] gives the model the tools of the project and the results of their servers', async () => {
    const talk = await scene.project([calls(echo('hello')), says('It said hello.')]);
    const chat = await talk.chat('Say hello!', { system: 'Be brief.', max_tokens: 77 });
    const [first, second] = talk.requests;
    expect(first!.headers.authorization).toBe(`Bearer ${API_KEY}`);
    expect(first!.body).toMatchObject({ model: talk.model, max_tokens: 77, system: [{ text: 'Be brief.' }] });
    const names = first!.body.tools!.map((tool) => 'name' in tool && tool.name);
    expect(names).toEqual(expect.arrayContaining(['echo', 'pid', 'wait']));
    expect(resultsIn(second!)).toMatchObject([{ content: [{ type: 'text', text: 'hello' }] }]);
    expect(chat).toEqual({
      ...{ run_id: expect.any(String), text: 'It said hello.', stop_reason: 'end', steps: 2, usage },
      messages: [
        {
          role: 'assistant',
          content: [{ type: 'tool_call', id: 'toolu_1', name: 'echo', input: { text: 'hello' } }],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              id: 'toolu_1',
              is_error: false,
              content: [{ type: 'text', text: 'hello' }],
            },
          ],
        },
        { role: 'assistant', content: [{ type: 'text', text: 'It said hello.' }] },
      ],
      tool_calls: [
        {
          ...{ id: 'toolu_1', step: 1, name: 'echo', server: 'box', input: { text: 'hello' } },
          ...{ is_error: false, text: 'hello', duration_ms: expect.any(Number) },
        },
      ],
    });
  });

  it('has its history in the error when it fails, and can be continued', async () => {
    const refusal = { status: 400, error: { type: 'invalid_request_error', message: 'Not now.' } };
    const talk = await scene.project([calls(echo('hello')), refusal, says('It said hello.')]);
    const { status, body } = await talk.refused('Say hello!');
    expect([status, body.error]).toMatchObject([502, { code: 'model_refused' }]);
    const { run_id, messages } = body.error!.details as unknown as ChatView;
    expect(messages).toMatchObject([
      { role: 'assistant', content: [{ type: 'tool_call', name: 'echo' }] },
      { role: 'user', content: [{ type: 'tool_result', is_error: false, content: [{ text: 'hello' }] }] },
    ]);
    expect(await talk.run(run_id)).toMatchObject({ status: 'failed', steps: 1 });
    const history = [{ role: 'user', content: 'Say hello!' }, ...messages];
    const { text } = await talk.project.done<ChatView>('POST /chat', {
      model: talk.model,
      messages: history,
    });
    expect(text).toBe('It said hello.');
  });

  it('can be streamed', async () => {
    const talk = await scene.project([calls(echo('hello')), says('Done.')]);
    const stream = await talk.stream('Say hello!');
    expect(stream.response.headers['content-type']).toBe('text/event-stream');
    const done = (await eventOf(stream, 'done')) as unknown as ChatView;
    await stream.ended;
    const events = stream.events.items.filter(({ event }) => event !== undefined);
    const texts = events.filter(({ event }) => event === 'text').map(({ data }) => JSON.parse(data!).text);
    expect(texts.join('')).toBe('Done.');
    const types = events.map(({ event }) => event).filter((type, index, all) => type !== all[index - 1]);
    expect(types).toEqual(['run', 'step', 'tool_start', 'tool_end', 'text', 'step', 'done']);
    expect(await eventOf(stream, 'run')).toEqual({ run_id: done.run_id });
    expect(await eventOf(stream, 'tool_end')).toEqual(done.tool_calls[0]);
    expect(done).toMatchObject({ text: 'Done.', steps: 2, usage });
  });

  it('continues an earlier conversation', async () => {
    const talk = await scene.project([calls(echo('one')), says('First.'), says('Second.')]);
    const asked = { role: 'user', content: 'One!' };
    const { messages } = await talk.chat('One!');
    const { text } = await talk.chat('Two!', { messages: [asked, ...messages] });
    expect(text).toBe('Second.');
    const said = talk.requests[2]!.body.messages;
    expect(said.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user']);
    expect(said[1]!.content).toMatchObject([{ type: 'tool_use', name: 'echo', input: { text: 'one' } }]);
    expect(said[2]!.content).toMatchObject([{ type: 'tool_result', content: [{ text: 'one' }] }]);
  });

  it('offers only the tools that the request names, by name or pattern', async () => {
    const talk = await scene.project([calls({ name: 'pid' }, echo('hello', 'toolu_2')), says('Done.')]);
    const chat = await talk.chat('Go!', { tools: ['ech*', 'wait'] });
    const names = talk.requests[0]!.body.tools!.map((tool) => 'name' in tool && tool.name);
    expect(names).toEqual(['echo', 'wait']);
    expect(resultsIn(talk.requests[1]!)).toMatchObject([
      { is_error: true, content: [{ text: 'Unknown tool: pid' }] },
      { content: [{ text: 'hello' }] },
    ]);
    const { tool_calls: recorded } = await talk.run(chat.run_id);
    const unknown = { server: null, status: 'error', error: { code: 'unknown_tool' }, run_id: chat.run_id };
    expect(recorded.find(({ tool }) => tool === 'pid')).toMatchObject(unknown);
    expect(recorded.find(({ tool }) => tool === 'echo')).toMatchObject({ server: 'box', status: 'ok' });
  });

  it('does not offer a disabled tool', async () => {
    const talk = await scene.project([says('Hm.')]);
    await talk.project.done('PATCH /tools/pid', { enabled: false });
    await talk.chat('Go!');
    const names = talk.requests[0]!.body.tools!.map((tool) => 'name' in tool && tool.name);
    expect(names).toContain('echo');
    expect(names).not.toContain('pid');
  });

  it('ends at its step limit', async () => {
    const talk = await scene.project(() => calls(echo('again')));
    const chat = await talk.chat('Go!', { max_steps: 3 });
    expect(chat).toMatchObject({ stop_reason: 'step_limit', steps: 3 });
    expect(talk.requests).toHaveLength(3);
    expect((await talk.run(chat.run_id)).status).toBe('completed');
  });

  it('requires the model key among the secrets of the project, and says so', async () => {
    const talk = await scene.project([says('Hello.')]);
    await talk.project.done('DELETE /secrets/ANTHROPIC_API_KEY');
    const { status, body } = await talk.refused('Hello?');
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: 'missing_secret', details: { secret: 'ANTHROPIC_API_KEY' } });
    expect(body.error!.message).toContain(
      `switchboard secret set ANTHROPIC_API_KEY --project ${talk.project.name}`,
    );
    expect(await talk.project.done('GET /runs')).toEqual({ runs: [], next_cursor: null });
    await talk.project.done('PUT /secrets/OTHER', { value: API_KEY });
    expect((await talk.chat('Hello?', { api_key_secret: 'OTHER' })).text).toBe('Hello.');
  });

  it('fails with a rejected key, as JSON and as a stream, and its run says why', async () => {
    const talk = await scene.project([says('Hello.')]);
    await talk.project.done('PUT /secrets/ANTHROPIC_API_KEY', { value: 'a-wrong-key' });
    const { status, body } = await talk.refused('Hello?');
    expect(status).toBe(502);
    expect(body.error).toMatchObject({ code: 'model_refused' });
    const run = await talk.run(String(body.error!.details.run_id));
    expect(run).toMatchObject({ status: 'failed', steps: 0, output: null, input: 'Hello?' });
    expect(run.error).toEqual({ code: 'model_refused', message: body.error!.message });
    expect(run.error!.message).toContain('API key');
    const { error } = (await eventOf(await talk.stream('Hello?'), 'error')) as { error: object };
    expect(error).toMatchObject({ code: 'model_refused', details: { run_id: expect.any(String) } });
  });

  it.each<[string, object]>([
    ['input', {}],
    ['input', { input: '' }],
    ['messages', { messages: [] }],
    ['messages', { messages: [{ role: 'assistant', content: 'Hm.' }] }],
    ['messages[0].role', { messages: [{ role: 'system', content: 'Hm.' }] }],
    ['messages[0].content[0].type', { messages: [{ role: 'user', content: [{ type: 'tool_call' }] }] }],
    ['max_steps', { input: 'x', max_steps: 0 }],
    ['tools', { input: 'x', tools: 'echo' }],
    ['base_url', { input: 'x', base_url: 'http://127.0.0.1' }],
    ['api_key_secret', { input: 'x', api_key_secret: 'a b' }],
  ])('rejects an invalid request: %s %j', async (path, body) => {
    const project = await scene.site.defaultProject();
    const answer = await project.ask('POST /chat', body);
    expect(answer.status).toBe(400);
    expect(answer.body.error?.details.problems?.map((problem) => problem.path)).toContain(path);
  });
});
