import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { API_KEY, says, startMessagesApi } from '../../test/agent/messages-api.ts';
import { startForTests } from '../../test/helpers/api-client.ts';
import { EventStream, openExchange } from '../../test/helpers/raw-http.ts';
import { SwitchboardError } from '../errors.ts';
import { readChat } from './chat-input.ts';

const path = '/projects/default/chat';
const unsaid = { model: undefined, system: undefined, tools: undefined, maxSteps: undefined };

const model = await startMessagesApi(() => says('Hello.'));
const { services, serve } = await startForTests({ chat: { baseUrl: model.url } });
const { store, chats, refresher } = services.database!;
await store.secrets.put(services.projects.get('default').id, 'ANTHROPIC_API_KEY', API_KEY);
await refresher.refresh(services.projects.get('default').id);
afterAll(() => model[Symbol.asyncDispose]());

async function follow(url: string): Promise<EventStream> {
  const headers = { 'content-type': 'application/json' };
  return new EventStream(await openExchange(url, { headers, body: { input: 'Hi!', stream: true } }));
}

describe('a chat', () => {
  it('needs only a text, with defaults for the rest', async () => {
    const { ask } = await serve();
    const { status, body } = await ask(`POST ${path}`, { input: 'Hi!' });
    expect([status, body]).toMatchObject([200, { text: 'Hello.', stop_reason: 'end' }]);
    expect(readChat('{"input": "Hi!"}').chat).toEqual({
      ...unsaid,
      messages: [{ role: 'user', content: 'Hi!' }],
      maxTokens: undefined,
      apiKeySecret: 'ANTHROPIC_API_KEY',
    });
  });

  it('accepts every option', async () => {
    const messages = [
      { role: 'user', content: 'One!' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Well.' },
          { type: 'tool_call', id: 'a', name: 'echo', input: { deep: [1] } },
        ],
      },
      {
        role: 'user',
        content: [
          {
            ...{ type: 'tool_result', id: 'a', is_error: true },
            content: [
              // Tool results may contain characters that we reject elsewhere.
              { type: 'text', text: 'nul \0' },
              { type: 'image', media_type: 'image/png', data: 'AAAA' },
              { type: 'document', media_type: 'application/pdf', data: 'AAAA', title: 'x' },
            ],
          },
        ],
      },
    ];
    const said = { model: 'claude-x', system: 'Be brief.', tools: ['a*', 'b'] };
    const limits = { max_steps: 3, max_tokens: 99, api_key_secret: 'KEY' };
    const { chat } = readChat(JSON.stringify({ ...said, ...limits, messages, input: 'Two!' }));
    expect(chat).toEqual({
      ...said,
      messages: [...messages, { role: 'user', content: 'Two!' }],
      ...{ maxSteps: 3, maxTokens: 99, apiKeySecret: 'KEY' },
    });
  });

  it('is rejected if it is nested too deeply', async () => {
    const { ask } = await serve();
    const begin = vi.spyOn(chats, 'begin');
    onTestFinished(() => begin.mockRestore());
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
    const call = `{"type":"tool_call","id":"a","name":"b","input":{"x":${deep}}}`;
    const text = `{"input":"x","messages":[{"role":"assistant","content":[${call}]}]}`;
    const { status, error } = await ask(`POST ${path}`, text);
    expect([status, error.message]).toEqual([400, expect.stringContaining('nested deeper')]);
    expect(begin).not.toHaveBeenCalled();
  });

  it('is streamed as events', async () => {
    const { url } = await serve();
    const stream = await follow(url(path));
    await stream.ended;
    const events = stream.events.items;
    expect([...new Set(events.map(({ event }) => event))]).toEqual(['run', 'text', 'step', 'done']);
    const [run, ...others] = events.map(({ data }) => JSON.parse(data!) as { run_id: string });
    expect(others.at(-1)).toMatchObject({ run_id: run!.run_id, text: 'Hello.' });
  });

  it.each([
    [new SwitchboardError('model_refused', 'No.', { data: { a: 1 } }), 'model_refused', 'No.', { a: 1 }],
    [new Error('a secret'), 'internal', 'Something went wrong inside Switchboard.', {}],
  ])('reports a failure inside its stream: %s', async (fault, code, message, details) => {
    const { url } = await serve();
    const begin = vi.spyOn(chats, 'begin').mockResolvedValue({
      id: randomUUID(),
      async finish(onEvent) {
        onEvent({ type: 'text', step: 1, text: 'Hel' });
        throw fault;
      },
    });
    onTestFinished(() => begin.mockRestore());
    const stream = await follow(url(path));
    await stream.ended;
    expect(stream.events.items.map(({ event }) => event)).toEqual(['run', 'text', 'error']);
    const { data } = stream.events.items.at(-1)!;
    expect(JSON.parse(data!)).toEqual({ error: { code, message, details } });
  });

  it('that cannot start returns an error instead of a stream', async () => {
    const { url } = await serve();
    const stream = await follow(url('/projects/nowhere/chat'));
    await stream.ended;
    expect(stream.response.statusCode).toBe(404);
    expect(stream.response.headers['content-type']).toBe('application/json');
  });
});
