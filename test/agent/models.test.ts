import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, it } from 'vitest';
import { AiAgent, type ClaudeClient, ClaudeModel, type Model } from '../../src/agent.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { API_KEY, calls, resultsIn, says, startMessagesApi } from './messages-api.ts';
import { openScene } from './scene.ts';

/** A client with only the required methods. */
function clientWith(answer: () => Promise<Anthropic.Message>): ClaudeClient & { asked: object[] } {
  const asked: object[] = [];
  return {
    asked,
    messages: {
      stream(params) {
        asked.push(params);
        return { on: () => {}, finalMessage: answer };
      },
    },
  };
}

describe('a custom client', () => {
  it('is used for Claude instead of the default one', async () => {
    await using api = await startMessagesApi([calls({ name: 'count' }), says('Done.')]);
    const client: ClaudeClient = new Anthropic({ apiKey: API_KEY, baseURL: api.url });
    await using agent = new AiAgent({
      ...{ model: 'eu.anthropic.claude-x', client, servers: { box: fixtureServer('returns-given-result') } },
    });
    expect((await agent.chat('count')).text).toBe('Done.');
    expect(api.requests.items.map(({ body }) => body.model)).toEqual(Array(2).fill('eu.anthropic.claude-x'));
    expect(resultsIn(api.requests.items[1]!)).toHaveLength(1);
  });

  it('needs only `messages.stream`, and no package of Anthropic’s', async () => {
    const client = clientWith(async () => says('hello'));
    await using agent = new AiAgent({ model: 'mine', client, maxTokens: 9 });
    expect((await agent.chat('hello')).text).toBe('hello');
    expect(client.asked).toMatchObject([{ model: 'mine', max_tokens: 9 }]);
  });

  it.each<[string, object, object]>([
    [
      'is rejected',
      { status: 403, headers: {}, error: { error: { type: 'permission_error', message: 'not yours' } } },
      { code: 'model_refused', message: expect.stringContaining('not yours (403 permission_error)') },
    ],
    [
      'is rate limited',
      { status: 429, headers: {}, error: { message: 'Too many requests' } },
      { code: 'model_unavailable', message: expect.stringContaining('429 Too many requests') },
    ],
    [
      'cannot connect',
      { status: undefined, headers: undefined },
      { code: 'model_unavailable', message: expect.stringContaining('cannot be reached: 429 Too many') },
    ],
  ])('with its own error classes is understood if it %s', async (_what, facts, expected) => {
    const client = clientWith(() => Promise.reject(Object.assign(new Error('429 Too many requests'), facts)));
    await using agent = new AiAgent({ model: 'mine', client });
    await expect(agent.chat('hello')).rejects.toMatchObject(expected);
    expect(client.asked).toHaveLength(1);
  });

  it('rejects a key and a base URL', () => {
    const client = clientWith(async () => says('hello'));
    for (const access of [{ apiKey: 'k' }, { baseUrl: 'http://127.0.0.1:1' }]) {
      expect(() => new ClaudeModel({ model: 'mine', client, ...access })).toThrow(/no effect with `client`/);
    }
    const other = { name: 'other', turn: () => Promise.reject(new Error('never asked')) };
    expect(() => new AiAgent({ model: other, client })).toThrow(/`client` has no effect/);
  });
});

describe('a custom model', () => {
  it('gets the conversation and the tools, and can call them', async () => {
    const seen: unknown[] = [];
    const model: Model = {
      name: 'mine',
      async turn({ system, messages, tools, signal, onText, onWarning }) {
        seen.push([system, messages.map(({ role }) => role), tools.length, signal.aborted]);
        const usage = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0 };
        onWarning('It is slow.');
        if (messages.length === 1) {
          const call = { type: 'tool_call' as const, id: 'a', name: 'count', input: {} };
          return { content: [call], stopReason: 'tools', usage, raw: 'as it was' };
        }
        expect(messages[1]).toHaveProperty('raw', 'as it was');
        onText('Counted.');
        return { content: [{ type: 'text', text: 'Counted.' }], stopReason: 'end', usage };
      },
    };
    await using scene = await openScene(
      [],
      () => ({ servers: { box: fixtureServer('returns-given-result') }, system: 'You count.' }),
      model,
    );
    const result = await scene.agent.chat('count');
    expect(result).toMatchObject({ text: 'Counted.', steps: 2, usage: { outputTokens: 4 } });
    expect(seen).toEqual([
      ['You count.', ['user'], 4, false],
      ['You count.', ['user', 'assistant', 'user'], 4, false],
    ]);
    expect(scene.warnings).toEqual(['It is slow.']);
  });
});
