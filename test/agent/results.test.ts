import { describe, expect, it } from 'vitest';
import { fixtureServer } from '../helpers/switchboard.ts';
import { calls, resultsIn, says } from './messages-api.ts';
import { openScene } from './scene.ts';

const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const base64 = (text: string) => Buffer.from(text).toString('base64');

type Content = Record<string, unknown>;

const shown: [what: string, given: Content, expected: Content][] = [
  ['a text', { type: 'text', text: 'hello' }, { type: 'text', text: 'hello' }],
  [
    'an image',
    { type: 'image', mimeType: 'image/png', data: pixel },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
  ],
  [
    'an image with line breaks',
    { type: 'image', mimeType: 'image/png', data: `${pixel.slice(0, 60)}\n${pixel.slice(60)}` },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
  ],
  [
    'an image with a wrong type',
    { type: 'image', mimeType: 'image/jpeg', data: pixel },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
  ],
  [
    'an image of a type that Claude does not support',
    { type: 'image', mimeType: 'image/svg+xml', data: base64('<svg/>') },
    { type: 'text', text: '[image of type image/svg+xml: it cannot be shown here]' },
  ],
  [
    'an invalid image',
    { type: 'image', mimeType: 'image/png', data: '?!' },
    { type: 'text', text: '[image, image/png: it is not valid base64]' },
  ],
  [
    'a sound',
    { type: 'audio', mimeType: 'audio/wav', data: base64('moo') },
    { type: 'text', text: '[audio, audio/wav, 3 bytes: it cannot be shown here]' },
  ],
  [
    'a text resource',
    { type: 'resource', resource: { uri: 'note:1', mimeType: 'text/plain', text: 'buy milk' } },
    { type: 'text', text: 'Resource note:1:\nbuy milk' },
  ],
  [
    'a text resource in base64',
    { type: 'resource', resource: { uri: 'note:2', mimeType: 'application/json', blob: base64('{"ä":1}') } },
    { type: 'text', text: 'Resource note:2:\n{"ä":1}' },
  ],
  [
    'a PDF',
    { type: 'resource', resource: { uri: 'menu.pdf', mimeType: 'application/pdf', blob: base64('%PDF') } },
    {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: base64('%PDF') },
      title: 'menu.pdf',
    },
  ],
  [
    'an image resource',
    { type: 'resource', resource: { uri: 'dot', mimeType: 'image/png', blob: pixel } },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
  ],
  [
    'a binary resource',
    { type: 'resource', resource: { uri: 'zip:1', mimeType: 'application/zip', blob: base64('PK') } },
    { type: 'text', text: '[resource zip:1, application/zip, 2 bytes: it cannot be shown here]' },
  ],
  [
    'a link',
    { type: 'resource_link', uri: 'note:3', name: 'third', description: 'a note', mimeType: 'text/plain' },
    { type: 'text', text: 'Link to resource note:3 (third; a note; text/plain)' },
  ],
  [
    'an unknown type',
    { type: 'hologram', depth: 3 },
    { type: 'text', text: '{"type":"hologram","depth":3}' },
  ],
];

describe('a tool result', () => {
  it.each(shown)('is converted for Claude: %s', async (_what, given, expected) => {
    expect((await giving({ content: [given] })).content).toEqual([expected]);
  });

  it('keeps its order', async () => {
    const { content } = await giving({ content: shown.map(([, given]) => given) });
    expect(content).toEqual(shown.map(([, , expected]) => expected));
  });

  it('uses structured content if it has no text', async () => {
    const structuredContent = { total: 3, names: ['a'] };
    const expected = { type: 'text', text: JSON.stringify(structuredContent) };
    expect((await giving({ content: [], structuredContent })).content).toEqual([expected]);
    const both = { content: [{ type: 'text', text: 'three' }], structuredContent };
    expect((await giving(both)).content).toEqual([{ type: 'text', text: 'three' }]);
  });

  it('is never empty', async () => {
    expect(await giving({ content: [] })).toMatchObject({
      content: [{ type: 'text', text: 'The tool returned no output.' }],
    });
    expect(await giving({ content: [{ type: 'text', text: ' \n' }], isError: true })).toMatchObject({
      is_error: true,
      content: [{ type: 'text', text: 'The tool failed without a message.' }],
    });
  });

  it('is an error if the tool says so', async () => {
    const failure = { content: [{ type: 'text', text: 'no such recipe' }], isError: true };
    expect(await giving(failure)).toMatchObject({ is_error: true, content: failure.content });
  });

  it('is truncated with a note, never inside a character', async () => {
    const content = [
      { type: 'text', text: 'x'.repeat(60) },
      { type: 'image', mimeType: 'image/png', data: pixel },
      { type: 'text', text: `${'y'.repeat(39)}🍲${'z'.repeat(100)}` },
      { type: 'text', text: 'w'.repeat(10) },
    ];
    const result = await giving({ content }, { maxResultCharacters: 100 });
    expect(result.content).toEqual([
      { type: 'text', text: 'x'.repeat(60) },
      expect.objectContaining({ type: 'image' }),
      { type: 'text', text: 'y'.repeat(39) },
      { type: 'text', text: expect.stringMatching(/^\[truncated: \d+ more characters/) },
    ]);
  });

  it('has a note instead of an image that is too large for Claude', async () => {
    const data = 'A'.repeat(5 * 1024 * 1024 + 4);
    const { content } = await giving({ content: [{ type: 'image', mimeType: 'image/png', data }] });
    expect(content).toEqual([{ type: 'text', text: expect.stringContaining('it is too large to be shown') }]);
  });
});

describe('a failed call', () => {
  it('gives Claude the server’s error', async () => {
    const input = { code: -32602, message: 'no such stove' };
    await using scene = await openScene([calls({ name: 'refuse', input }), says('Sorry.')], () => ({
      servers: { kitchen: fixtureServer('returns-errors') },
    }));
    await scene.agent.chat('cook');
    const expected = 'Server "kitchen" returned an error for the tool "refuse": no such stove (-32602)';
    expect(resultsIn(scene.api.requests.items[1]!)).toMatchObject([
      { is_error: true, content: [{ type: 'text', text: expected }] },
    ]);
  });

  it('fails when the server times out', async () => {
    await using scene = await openScene([calls({ name: 'hang' }), says('Sorry.')], () => ({
      servers: { slow: { ...fixtureServer('hangs-in-call'), timeoutMs: 50 } },
    }));
    await scene.agent.chat('hurry');
    const [result] = resultsIn(scene.api.requests.items[1]!);
    expect(result?.is_error).toBe(true);
    expect(JSON.stringify(result?.content)).toContain('did not respond within');
  });
});

async function giving(result: object, options: { maxResultCharacters?: number } = {}) {
  await using scene = await openScene([calls({ name: 'give', input: { result } }), says('thanks')], () => ({
    ...options,
    servers: { giver: fixtureServer('returns-given-result') },
  }));
  await scene.agent.chat('give');
  const { cache_control: _mark, ...received } = resultsIn(scene.api.requests.items[1]!)[0]!;
  return received;
}
