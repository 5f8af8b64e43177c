import { describe, expect, it } from 'vitest';
import { type AgentEvent, ChatError, ClaudeModel, nativeTool } from '../../src/agent.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import type { Witness } from '../helpers/witness.ts';
import {
  API_KEY,
  calls,
  message,
  type Reply,
  resultsIn,
  says,
  startMessagesApi,
  textBlock,
} from './messages-api.ts';
import { openScene } from './scene.ts';

const counting = (witness: Witness) => ({
  servers: { worker: fixtureServer('reports-calls', witness.env('worker')) },
});
const overloaded: Reply = {
  ...{ status: 529, headers: { 'retry-after-ms': '1' } },
  error: { type: 'overloaded_error', message: 'Overloaded' },
};

async function failureOf(chat: Promise<unknown>): Promise<ChatError> {
  const thrown = await chat.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ChatError);
  return thrown as ChatError;
}

describe('a failed chat', () => {
  it('keeps its history when it is cancelled, and can be continued', async () => {
    const both = calls(
      { name: 'whoami', id: 'done' },
      { name: 'work', input: { text: 'a' }, id: 'under way' },
    );
    await using scene = await openScene([both, says('on we go')], counting);
    const user = new AbortController();
    const events: AgentEvent[] = [];
    const chat = scene.agent.chat('work', {
      signal: user.signal,
      onEvent: (event) => {
        events.push(event);
        if (event.type === 'tool_end') void scene.witness.sees('worker', 'work').then(() => user.abort());
      },
    });
    const error = await failureOf(chat);
    expect(error).toMatchObject({ code: 'cancelled', cause: user.signal.reason, steps: 1 });
    expect(error.toolCalls).toMatchObject([
      { id: 'done', isError: false },
      { id: 'under way', isError: true, outcome: undefined },
    ]);
    expect(error.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(events.filter(({ type }) => type === 'message')).toHaveLength(2);
    const next = await scene.agent.chat('go on', { history: error.messages });
    expect(next.text).toBe('on we go');
    const sent = JSON.stringify(scene.api.requests.items[1]?.body.messages);
    expect(sent).toContain('The chat ended before the tool returned a result');
  });

  it('keeps its history when the model fails, and can be retried without new input', async () => {
    const script: Reply[] = [calls({ name: 'count' }), overloaded, overloaded, overloaded, says('at last')];
    await using scene = await openScene(script, () => ({
      servers: { box: fixtureServer('returns-given-result') },
    }));
    const error = await failureOf(scene.agent.chat('count'));
    expect(error).toMatchObject({ code: 'model_unavailable', name: 'ChatError', steps: 1, text: '' });
    expect(error.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 });
    const { text, messages } = await scene.agent.chat([], { history: error.messages });
    expect(text).toBe('at last');
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(scene.api.requests.items[4]?.body.messages).toEqual(scene.api.requests.items[3]?.body.messages);
  });

  it('keeps its input when its servers cannot be started', async () => {
    await using scene = await openScene([], () => ({ servers: { bad: fixtureServer('fails-to-start') } }));
    const error = await failureOf(scene.agent.chat('hello'));
    expect(error).toMatchObject({ code: 'server_start_failed', steps: 0 });
    expect(error.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hello' }] }]);
  });

  it('names the custom model that failed, and ends even if the model ignores the signal', async () => {
    const model = { name: 'mine', turn: () => Promise.reject(new TypeError('not a function')) };
    await using scene = await openScene([], undefined, model);
    const error = await failureOf(scene.agent.chat('hello'));
    expect(error).toMatchObject({
      code: 'model_unavailable',
      message: 'The model "mine" failed: not a function',
    });
    const user = new AbortController();
    const deaf = {
      name: 'deaf',
      turn: () => {
        user.abort();
        return new Promise<never>(() => {});
      },
    };
    await using other = await openScene([], undefined, deaf);
    expect(await failureOf(other.agent.chat('hello', { signal: user.signal }))).toHaveProperty(
      'code',
      'cancelled',
    );
  });

  it('does not expose the conversation when its error is printed', async () => {
    await using scene = await openScene([]);
    const error = await failureOf(scene.agent.chat('a private thing'));
    expect(Object.keys(error)).not.toContain('messages');
    expect(error.messages).toHaveLength(1);
  });
});

describe('a listener that throws', () => {
  const broken = new Error('my own mistake');

  it.each(['text', 'message', 'step', 'tool_start', 'tool_end', 'done'])(
    'ends the chat with its error, at %s',
    async (type) => {
      const first = message([textBlock('I count.'), ...calls({ name: 'count' }).content], {
        stop_reason: 'tool_use',
      });
      await using scene = await openScene([first, says('done')], () => ({
        servers: { box: fixtureServer('returns-given-result') },
      }));
      const emitted: string[] = [];
      const onEvent = (event: AgentEvent) => {
        emitted.push(event.type);
        if (event.type === type) throw broken;
      };
      const error = await failureOf(scene.agent.chat('count', { onEvent }));
      expect(error).toMatchObject({
        code: 'listener_failed',
        message: expect.stringContaining(broken.message),
      });
      expect(error.cause).toHaveProperty('cause', broken);
      expect(emitted.filter((each) => each === type)).toHaveLength(1);
      expect(emitted.at(-1)).toBe(type);
    },
  );

  it('ends the calls in flight', async () => {
    const work = calls({ name: 'work', input: { text: 'a' } }, { name: 'whoami', id: 'b' });
    await using scene = await openScene([work], counting);
    const onEvent = (event: AgentEvent) => {
      if (event.type === 'tool_end') throw broken;
    };
    const error = await failureOf(scene.agent.chat('work', { onEvent }));
    expect(error.code).toBe('listener_failed');
    await scene.witness.sees('worker', 'cancelled');
  });
});

describe('an interrupted response of Claude', () => {
  const cutBefore = (how: 'end' | 'reset' | 'error'): Reply => ({ cut: says('half'), after: 3, how });

  async function ask(script: Reply[]) {
    await using api = await startMessagesApi(script);
    const model = new ClaudeModel({ model: 'claude-x', apiKey: API_KEY, baseUrl: api.url, retryDelayMs: 1 });
    const said: string[] = [];
    const turn = model.turn({
      ...{ system: undefined, tools: [], signal: new AbortController().signal },
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }],
      onText: (text) => said.push(text),
      onWarning: () => {},
    });
    const end = await turn.then(
      ({ content }) => content,
      (error: Error) => error,
    );
    return { end, said: said.join(''), asked: api.requests.items.length };
  }

  it.each(['end', 'reset', 'error'] as const)('is retried if it contained no text: %s', async (how) => {
    const { end, said, asked } = await ask([cutBefore(how), cutBefore(how), says('whole')]);
    expect(end).toEqual([{ type: 'text', text: 'whole' }]);
    expect([said, asked]).toEqual(['whole', 3]);
  });

  it('fails after repeated retries', async () => {
    const { end, asked } = await ask(Array.from({ length: 9 }, () => cutBefore('error')));
    expect(end).toMatchObject({ code: 'model_unavailable' });
    expect(asked).toBe(3);
  });

  it('is not retried once text was emitted', async () => {
    const { end, said, asked } = await ask([
      { cut: says('half of it'), after: 4, how: 'error' },
      says('whole'),
    ]);
    expect(end).toMatchObject({ code: 'model_unavailable' });
    expect([said, asked]).toEqual(['half ', 1]);
  });

  it('has its text in the error', async () => {
    await using scene = await openScene([{ cut: says('half of it'), after: 4, how: 'error' }, says('whole')]);
    const error = await failureOf(scene.agent.chat('hello'));
    expect(error).toMatchObject({ text: 'half ', steps: 0 });
    expect(error.messages).toHaveLength(1);
    expect((await scene.agent.chat([], { history: error.messages })).text).toBe('whole');
  });
});

describe('a tool that returns malformed content', () => {
  it('does not end the chat', async () => {
    const odd = nativeTool({ name: 'odd', input: {}, run: () => ({ content: [{ type: 'text' }] }) });
    await using scene = await openScene(
      [
        calls({ name: 'odd' }, { name: 'give', input: { result: { content: [null, 5, 'x'] } }, id: 'b' }),
        says('Odd.'),
      ],
      () => ({ servers: { box: fixtureServer('returns-given-result') }, nativeTools: [odd] }),
    );
    expect((await scene.agent.chat('go')).text).toBe('Odd.');
    expect(resultsIn(scene.api.requests.items[1]!)).toHaveLength(2);
  });
});
