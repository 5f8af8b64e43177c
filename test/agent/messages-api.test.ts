import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, it } from 'vitest';
import { eventsOf } from './message-events.ts';
import { API_KEY, calls, message, type Reply, says, startMessagesApi, textBlock } from './messages-api.ts';

/** The compiler checks that these are exactly the event types of the SDK. */
const eventTypes = {
  message_start: true,
  message_delta: true,
  message_stop: true,
  content_block_start: true,
  content_block_delta: true,
  content_block_stop: true,
} satisfies Record<Anthropic.RawMessageStreamEvent['type'], true>;

const everything = message(
  [
    { type: 'thinking', thinking: 'let me see', signature: 'signed' },
    { type: 'redacted_thinking', data: 'secret' },
    textBlock('I look it up.'),
    ...calls({ name: 'look', input: { at: ['ä', 1, null] } }).content,
  ],
  { stop_reason: 'tool_use' },
);

describe('the stand-in of the Messages API', () => {
  it('sends every event type that the SDK knows, and no other', () => {
    const sent = new Set<string>(eventsOf(everything).map(({ type }) => type));
    expect([...sent].toSorted()).toEqual([...Object.keys(eventTypes), 'ping'].toSorted());
  });

  it('sends the same message as events and as JSON', async () => {
    await using api = await startMessagesApi([everything, everything]);
    const client = clientOf(api.url);
    const streamed = await client.messages.stream(request()).finalMessage();
    const whole = await client.messages.create(request());
    expect(streamed).toMatchObject(JSON.parse(JSON.stringify(everything)));
    expect(whole).toMatchObject(JSON.parse(JSON.stringify(everything)));
  });

  it('fails with errors that the SDK has a class for', async () => {
    const overloaded = { status: 529, error: { type: 'overloaded_error', message: 'Overloaded' } };
    const limited = { status: 429, error: { type: 'rate_limit_error', message: 'slow down' } };
    await using api = await startMessagesApi([overloaded, limited]);
    const client = clientOf(api.url);
    await expect(client.messages.create(request())).rejects.toBeInstanceOf(Anthropic.OverloadedError);
    await expect(client.messages.create(request())).rejects.toBeInstanceOf(Anthropic.RateLimitError);
    const stranger = new Anthropic({ apiKey: 'wrong', baseURL: api.url });
    await expect(stranger.messages.create(request())).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
  });

  it.each<[string, Reply]>([
    ['ends too early', { cut: says('half of it'), after: 3, how: 'end' }],
    ['is reset', { cut: says('half of it'), after: 3, how: 'reset' }],
    ['reports an error', { cut: says('half of it'), after: 3, how: 'error' }],
  ])('can send a stream that %s', async (_how, reply) => {
    await using api = await startMessagesApi([reply]);
    const stream = clientOf(api.url).messages.stream(request());
    await expect(stream.finalMessage()).rejects.toBeInstanceOf(Anthropic.AnthropicError);
  });

  it.each<[string, Partial<Anthropic.MessageCreateParamsNonStreaming>]>([
    ['no messages', { messages: [] }],
    ['a blank text', { messages: [{ role: 'user', content: ' ' }] }],
    ['a call without its result', { messages: [...request().messages, calledBy('a')] }],
    ['a result without its call', { messages: [...request().messages, resultOf('a')] }],
    ['a result of another call', { messages: [...request().messages, calledBy('a'), resultOf('b')] }],
    ['an empty error', { messages: [...request().messages, calledBy('a'), emptyError('a')] }],
    ['two tools with the same name', { tools: [tool('a'), tool('a')] }],
    ['an invalid name', { tools: [tool('a b')] }],
  ])('rejects %s', async (_what, change) => {
    await using api = await startMessagesApi(() => says('never'));
    const asked = clientOf(api.url).messages.create({ ...request(), ...change });
    await expect(asked).rejects.toBeInstanceOf(Anthropic.BadRequestError);
  });
});

function clientOf(baseURL: string): Anthropic {
  return new Anthropic({ apiKey: API_KEY, baseURL, maxRetries: 0 });
}

function request(): Anthropic.MessageCreateParamsNonStreaming {
  return { model: 'claude-stand-in', max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] };
}

function calledBy(id: string): Anthropic.MessageParam {
  return { role: 'assistant', content: [{ type: 'tool_use', id, name: 'look', input: {} }] };
}

function resultOf(id: string): Anthropic.MessageParam {
  return { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'seen' }] };
}

function emptyError(id: string): Anthropic.MessageParam {
  return { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, is_error: true }] };
}

function tool(name: string): Anthropic.Tool {
  return { name, input_schema: { type: 'object' } };
}
