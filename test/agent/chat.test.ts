import { afterEach, describe, expect, it, vi } from 'vitest';
import { type AgentEvent, nativeTool } from '../../src/agent.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import type { Witness } from '../helpers/witness.ts';
import { calls, message, type Reply, resultsIn, says, textBlock } from './messages-api.ts';
import { openScene } from './scene.ts';

const counting = (witness: Witness) => ({
  servers: { worker: fixtureServer('reports-calls', witness.env('worker')) },
});
const work = (...texts: string[]) =>
  calls(...texts.map((text) => ({ name: 'work', input: { text }, id: `id_${text}` })));

describe('a chat', () => {
  it('runs the tool calls of one turn concurrently, and returns the results in order', async () => {
    await using scene = await openScene([work('a', 'b', 'c'), says('done')], counting);
    const chat = scene.agent.chat('work');
    // All three are in flight before the first is done, and they end in reverse order.
    await scene.witness.severalOf('worker', 'work', 3);
    for (const text of ['c', 'b', 'a']) scene.witness.tell('worker', `finish ${text}`);
    await chat;
    const results = resultsIn(scene.api.requests.items[1]!);
    expect(results.map(({ tool_use_id: id, content }) => [id, content])).toEqual(
      ['a', 'b', 'c'].map((text) => [`id_${text}`, [{ type: 'text', text }]]),
    );
  });

  it('ends when it is cancelled, and cancels the call in flight at its server', async () => {
    await using scene = await openScene([work('a'), says('never')], counting);
    const user = new AbortController();
    const chat = scene.agent.chat('work', { signal: user.signal });
    await scene.witness.sees('worker', 'work');
    user.abort(new Error('changed my mind'));
    await expect(chat).rejects.toThrow('changed my mind');
    await scene.witness.sees('worker', 'cancelled');
    expect(scene.api.requests.items).toHaveLength(1);
  });

  it('ends when it is cancelled during a response of Claude, and closes the connection', async () => {
    const user = new AbortController();
    await using scene = await openScene(async ({ gone }) => {
      user.abort();
      await new Promise((resolve) => gone.addEventListener('abort', resolve));
      return says('to nobody');
    });
    await expect(scene.agent.chat('hello', { signal: user.signal })).rejects.toMatchObject({
      ...{ code: 'cancelled', cause: { name: 'AbortError' } },
    });
    const request = await scene.api.requests.first(() => true);
    if (!request.gone.aborted)
      await new Promise((resolve) => request.gone.addEventListener('abort', resolve));
  });

  it('ends when it is cancelled even if a native tool ignores the signal', async () => {
    const user = new AbortController();
    const deaf = nativeTool({
      name: 'deaf',
      input: { type: 'object' },
      run: () => {
        user.abort(new Error('enough'));
        return new Promise(() => {});
      },
    });
    await using scene = await openScene([calls({ name: 'deaf' })], () => ({ nativeTools: [deaf] }));
    await expect(scene.agent.chat('go', { signal: user.signal })).rejects.toThrow('enough');
  });

  it('stops at its step limit without running the last tool calls', async () => {
    await using scene = await openScene(
      (_request, index) => (index < 3 ? calls({ name: 'count', id: `id_${index}` }) : says('went on')),
      () => ({ servers: { box: fixtureServer('returns-given-result') }, maxSteps: 3 }),
    );
    const result = await scene.agent.chat('on and on');
    expect(result).toMatchObject({ stopReason: 'step_limit', steps: 3 });
    expect(result.toolCalls.map(({ outcome }) => outcome !== undefined)).toEqual([true, true, false]);
    const continued = await scene.agent.chat('go on', { history: result.messages });
    expect(continued.text).toBe('went on');
    const sent = JSON.stringify(scene.api.requests.items[3]?.body.messages);
    expect(sent).toContain('the limit of 3 steps was reached');
  });

  it('does not run a truncated tool call, and can be continued', async () => {
    const cutOff = { ...calls({ name: 'count' }), stop_reason: 'max_tokens' as const };
    await using scene = await openScene([cutOff, says('again')], () => ({
      servers: { box: fixtureServer('returns-given-result') },
    }));
    const result = await scene.agent.chat('a long one');
    expect(result.stopReason).toBe('length');
    expect(result.toolCalls).toMatchObject([{ isError: true, outcome: undefined }]);
    expect((await scene.agent.chat('go on', { history: result.messages })).text).toBe('again');
  });

  it('continues when Claude pauses, and ends when it refuses', async () => {
    const paused = says('one moment', { stop_reason: 'pause_turn' });
    const refused = says('no', { stop_reason: 'refusal' });
    await using scene = await openScene([paused, says('here it is'), refused]);
    expect(await scene.agent.chat('search')).toMatchObject({ text: 'here it is', steps: 2 });
    expect(await scene.agent.chat('harm')).toMatchObject({ text: 'no', stopReason: 'refused' });
  });

  it('sends opaque content back to Claude unchanged', async () => {
    const thinking = { type: 'thinking' as const, thinking: 'hm', signature: 'signed' };
    const first = message([thinking, ...calls({ name: 'count' }).content], { stop_reason: 'tool_use' });
    await using scene = await openScene([first, says('done')], () => ({
      servers: { box: fixtureServer('returns-given-result') },
    }));
    await scene.agent.chat('count');
    expect(scene.api.requests.items[1]?.body.messages[1]).toEqual({
      role: 'assistant',
      content: JSON.parse(JSON.stringify(first.content)),
    });
  });

  it('continues an earlier one, even after an empty response', async () => {
    await using scene = await openScene([message([]), says('hello again')]);
    const first = await scene.agent.chat('hello');
    expect(first.text).toBe('');
    const second = await scene.agent.chat('are you there?', { history: first.messages });
    expect(second.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(scene.api.requests.items[1]?.body.messages).toMatchObject([
      { content: [{ text: 'hello' }] },
      { content: [{ text: 'are you there?' }] },
    ]);
  });

  it('counts the tokens of all its steps', async () => {
    await using scene = await openScene([calls({ name: 'count' }), says('done')], () => ({
      servers: { box: fixtureServer('returns-given-result') },
    }));
    const { usage, steps } = await scene.agent.chat('count');
    expect({ ...usage, steps }).toEqual({
      ...{ inputTokens: 20, outputTokens: 10, cacheReadTokens: 4, cacheWriteTokens: 6, steps: 2 },
    });
  });

  it('marks the tools, the system prompt and the end of the conversation for the cache', async () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    await using scene = await openScene([calls({ name: 'count' }), says('done')], () => ({
      servers: { box: fixtureServer('returns-given-result') },
      system: 'You count.',
    }));
    await scene.agent.chat('count');
    for (const { body } of scene.api.requests.items) {
      expect(body.tools?.map((tool) => 'cache_control' in tool)).toEqual([false, false, false, true]);
      expect(body.system).toEqual([{ type: 'text', text: 'You count.', ...mark }]);
      const content = body.messages.at(-1)?.content as object[];
      expect(content.at(-1)).toMatchObject(mark);
      expect(JSON.stringify(body.messages).split('cache_control')).toHaveLength(2);
    }
  });

  it('emits its events in order', async () => {
    const script = [
      message([textBlock('I count. '), ...calls({ name: 'whoami' }).content], { stop_reason: 'tool_use' }),
      says('Done.'),
    ];
    await using scene = await openScene(script, () => ({
      servers: { box: fixtureServer('returns-given-result') },
    }));
    const events: AgentEvent[] = [];
    for await (const event of scene.agent.chatStream('count')) events.push(event);
    const emitted = events.map((event) => (event.type === 'text' ? event.text : event.type));
    expect(emitted).toEqual([
      ...['I cou', 'nt. ', 'message', 'step', 'tool_start', 'tool_end', 'message'],
      ...['Don', 'e.', 'message', 'step', 'done'],
    ]);
    expect(events.at(-1)).toMatchObject({ result: { text: 'Done.', steps: 2 } });
  });

  it('ends when its events are no longer consumed', async () => {
    await using scene = await openScene([work('a')], counting);
    for await (const event of scene.agent.chatStream('work')) {
      if (event.type === 'tool_start') break;
    }
    expect(scene.api.requests.items).toHaveLength(1);
  });

  it('fails in its stream with the same error', async () => {
    await using scene = await openScene([]);
    const first = scene.agent.chatStream('hello').next();
    await expect(first).rejects.toMatchObject({ code: 'model_refused' });
  });

  it('requires input', async () => {
    await using scene = await openScene([]);
    await expect(scene.agent.chat(' ')).rejects.toMatchObject({ code: 'invalid_input' });
  });
});

describe('Claude’s API', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  const limited = (headers: Record<string, string>): Reply => ({
    ...{ status: 429, headers, error: { type: 'rate_limit_error', message: 'slow down' } },
  });
  const overloaded: Reply = {
    ...{ status: 529, headers: { 'retry-after-ms': '1' } },
    error: { type: 'overloaded_error', message: 'Overloaded' },
  };

  it('is retried after 429 and 529, with the delay that it requests', async () => {
    await using scene = await openScene([limited({ 'retry-after-ms': '1' }), overloaded, says('at last')]);
    expect((await scene.agent.chat('hello')).text).toBe('at last');
    expect(scene.api.requests.items.map(({ headers }) => headers['x-stainless-retry-count'])).toEqual([
      ...['0', '1', '2'],
    ]);
  });

  it('fails with a clear error if it stays overloaded', async () => {
    await using scene = await openScene(() => overloaded);
    await expect(scene.agent.chat('hello')).rejects.toMatchObject({
      code: 'model_unavailable',
      message: "Claude's API failed: Overloaded (529 overloaded_error)",
    });
  });

  it.each(['end', 'reset', 'error'] as const)(
    'fails with a clear error if it breaks off (%s)',
    async (how) => {
      await using scene = await openScene([{ cut: says('half of it'), after: 4, how }, says('whole')]);
      await expect(scene.agent.chat('hello')).rejects.toMatchObject({
        code: 'model_unavailable',
        message: expect.stringMatching(
          how === 'error'
            ? /^Claude's API failed: Overloaded/
            : /^The response of Claude's API was interrupted: /,
        ),
      });
      expect((await scene.agent.chat('hello')).text).toBe('whole');
    },
  );

  it('fails with a clear error if it rejects the key', async () => {
    await using scene = await openScene([], () => ({ apiKey: 'wrong' }));
    await expect(scene.agent.chat('hello')).rejects.toMatchObject({
      code: 'model_refused',
      message: expect.stringMatching(/invalid API key \(401 authentication_error\). Check the API key$/),
    });
  });

  it('requires a key, and the error says where to set it', async () => {
    for (const name of ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_PROFILE'])
      vi.stubEnv(name, undefined);
    // The profile of the developer must not provide one either.
    vi.stubEnv('ANTHROPIC_CONFIG_DIR', '/nowhere');
    await using scene = await openScene([], () => ({ apiKey: undefined }));
    await expect(scene.agent.chat('hello')).rejects.toMatchObject({
      code: 'invalid_config',
      message: 'The API key for Claude is missing: set ANTHROPIC_API_KEY or `apiKey`.',
    });
  });

  it('fails with the address in the error if it is unreachable', async () => {
    await using scene = await openScene([]);
    await scene.api[Symbol.asyncDispose]();
    await expect(scene.agent.chat('hello')).rejects.toMatchObject({
      code: 'model_unavailable',
      message: expect.stringContaining(`cannot be reached at ${scene.api.url}`),
    });
  });
});
