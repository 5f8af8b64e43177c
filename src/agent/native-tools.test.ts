import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { jsonSchemaOf, nativeTool, runNative } from './native-tools.ts';

const context = { signal: undefined };

describe('a native tool', () => {
  it('infers the type of its handler from its schema', () => {
    nativeTool({
      name: 'typed',
      input: z.object({ count: z.number().default(1) }),
      run: (input) => expectTypeOf(input).toEqualTypeOf<{ count: number }>(),
    });
    nativeTool({
      name: 'untyped',
      input: { type: 'object', properties: {} },
      run: (input) => expectTypeOf(input).toEqualTypeOf<Record<string, unknown>>(),
    });
  });

  it('advertises the input of its schema, not the output', () => {
    const input = z.object({ count: z.number().default(1) });
    expect(jsonSchemaOf(nativeTool({ name: 'a', input, run: () => '' }))).not.toHaveProperty('required');
    const plain = { type: 'object', required: ['count'] };
    expect(jsonSchemaOf(nativeTool({ name: 'a', input: plain, run: () => '' }))).toBe(plain);
  });

  it('rejects a schema that JSON Schema cannot express', () => {
    const mute = {
      '~standard': { version: 1, vendor: 'mute', validate: (value: unknown) => ({ value }) },
    } as const;
    const silent = nativeTool({ name: 'silent', input: mute, run: () => '' });
    expect(() => jsonSchemaOf(silent)).toThrow(
      /"silent" cannot be offered: its schema, of .*, cannot be converted/,
    );
    const odd = nativeTool({ name: 'odd', input: z.object({ when: z.date() }), run: () => '' });
    expect(() => jsonSchemaOf(odd)).toThrow(
      /"odd" cannot be offered: its schema cannot be converted to JSON/,
    );
  });

  it.each<[string, unknown, object]>([
    ['a text', 'soup', { content: [{ type: 'text', text: 'soup' }] }],
    ['nothing', undefined, { content: [] }],
    ['JSON', { a: 1 }, { content: [{ type: 'text', text: '{"a":1}' }], structuredContent: { a: 1 } }],
    ['a list', [1], { content: [{ type: 'text', text: '[1]' }], structuredContent: [1] }],
    ['null', null, { content: [{ type: 'text', text: 'null' }], structuredContent: null }],
    ['a result', { content: [{ type: 'x' }], isError: true }, { content: [{ type: 'x' }], isError: true }],
    [
      'an object that only looks like a result',
      { content: 'soup' },
      { content: [{ type: 'text', text: '{"content":"soup"}' }], structuredContent: { content: 'soup' } },
    ],
  ])('may return %s', async (_what, given, outcome) => {
    const tool = nativeTool({ name: 'giver', input: {}, run: async () => given });
    expect(await runNative(tool, {}, context)).toEqual(outcome);
  });

  it('runs with `this`', async () => {
    const tool = { name: 'self', input: {}, word: 'me', run: () => '' };
    tool.run = function run(this: { word: string }) {
      return this.word;
    };
    expect(await runNative(nativeTool(tool), {}, context)).toEqual({
      content: [{ type: 'text', text: 'me' }],
    });
  });

  it('does not run with arguments that its schema rejects', async () => {
    const input = z.object({ list: z.array(z.object({ count: z.number() })) });
    const tool = nativeTool({ name: 'strict', input, run: () => expect.unreachable() });
    expect(await runNative(tool, { list: [{ count: 'one' }] }, context)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^The arguments are invalid\. list\.0\.count: /) }],
    });
  });
});
