import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parameterHeaderLines, parameterHeaderProblem, parameterHeaders } from './parameter-headers.ts';

const marked = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name });
const object = (properties: object) => ({ type: 'object', properties });

describe('arguments sent as headers', () => {
  it('are those that the schema marks, at any depth', () => {
    const schema = object({
      region: marked('Region'),
      plain: { type: 'string' },
      deep: object({ deeper: object({ count: marked('X-Count', 'integer'), ok: marked('ok', 'boolean') }) }),
    });
    expect(parameterHeaders(schema)).toEqual([
      { path: ['region'], header: 'mcp-param-region', type: 'string' },
      { path: ['deep', 'deeper', 'count'], header: 'mcp-param-x-count', type: 'integer' },
      { path: ['deep', 'deeper', 'ok'], header: 'mcp-param-ok', type: 'boolean' },
    ]);
  });

  it.each([undefined, null, 1, true, [], {}, object({}), object({ 'x-mcp-header': { type: 'string' } })])(
    'are none in %j',
    (schema) => expect(parameterHeaders(schema)).toEqual([]),
  );

  it.each([
    ['the schema itself', { ...object({}), 'x-mcp-header': 'A' }],
    ['an element', object({ a: { type: 'array', items: marked('A') } })],
    ['a choice', object({ a: { oneOf: [marked('A')] } })],
    ['another choice', { anyOf: [object({ a: marked('A') })] }],
    ['a condition', { if: object({ a: marked('A') }) }],
    ['a definition', { $defs: { a: marked('A') } }],
    ['a pattern', { patternProperties: { '^a': marked('A') } }],
    ['an additional property', { additionalProperties: marked('A') }],
    ['a member of an additional property', { additionalProperties: object({ a: marked('A') }) }],
  ])('cannot be %s', (_what, schema) => {
    expect(parameterHeaders(schema)).toEqual({ problem: expect.stringContaining('cannot have a header') });
  });

  it.each(['', ' ', 'a b', 'a:b', 'a\r\nb', 'ä', 1, null, undefined])('cannot have the name %j', (name) => {
    const schema = { properties: { a: { type: 'string', 'x-mcp-header': name ?? null } } };
    expect(parameterHeaders(schema)).toEqual({ problem: 'the header of a is not a valid name' });
  });

  it.each(['number', 'object', 'array', 'null', ['string'], undefined])('cannot be of type %j', (type) => {
    const schema = { properties: { a: { ...marked('A'), type } } };
    expect(parameterHeaders(schema)).toEqual({
      problem: expect.stringContaining('a has a header and is of type'),
    });
  });

  it('cannot have the same name, in any case', () => {
    expect(parameterHeaders(object({ a: marked('Name'), b: marked('nAME') }))).toEqual({
      problem: 'two arguments have the same header',
    });
  });
});

const declared = parameterHeaders(
  object({
    text: marked('Text'),
    deep: object({ n: marked('N', 'integer') }),
    flag: marked('Flag', 'boolean'),
  }),
);
if ('problem' in declared) throw new Error(declared.problem);

describe('headers that repeat arguments', () => {
  it('are written for every possible argument', () => {
    const args = { text: 'ä', deep: { n: -3 }, flag: false, other: 'x' };
    expect(parameterHeaderLines(declared, args)).toBe(
      'mcp-param-text: =?base64?w6Q=?=\r\nmcp-param-n: -3\r\nmcp-param-flag: false\r\n',
    );
  });

  it.each([undefined, null, [], 'text', {}, { text: null, deep: [1], flag: {} }, { deep: { n: 2 ** 60 } }])(
    'are missing for %j',
    (args) => {
      expect(parameterHeaderLines(declared, args)).toBe('');
      expect(parameterHeaderProblem(declared, args, {})).toBeUndefined();
    },
  );

  it('do not come from inherited properties', () => {
    const [inherited] = [parameterHeaders(object({ toString: marked('A'), constructor: marked('B') }))];
    if ('problem' in inherited) throw new Error(inherited.problem);
    expect(parameterHeaderLines(inherited, {})).toBe('');
  });

  it('are valid as written, for all arguments', () => {
    const values = fc.record({
      text: fc.oneof(
        fc.string({ unit: 'binary' }).map((text) => text.toWellFormed()),
        fc.constant(null),
      ),
      deep: fc.record({ n: fc.oneof(fc.maxSafeInteger(), fc.double(), fc.constant(undefined)) }),
      flag: fc.oneof(
        fc.boolean(),
        fc.string().map((text) => text.toWellFormed()),
      ),
    });
    fc.assert(
      fc.property(values, (args) => {
        const lines = parameterHeaderLines(declared, args).split('\r\n').slice(0, -1);
        const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2)));
        expect(parameterHeaderProblem(declared, args, headers)).toBeUndefined();
      }),
    );
  });

  it.each([
    ['missing', {}],
    ['another text', { 'mcp-param-text': 'b' }],
    ['invalid base64', { 'mcp-param-text': '=?base64?!?=' }],
    ['sent twice', { 'mcp-param-text': ['a', 'a'] }],
  ])('are invalid if one is %s', (_what, headers) => {
    expect(parameterHeaderProblem(declared, { text: 'a' }, headers)).toContain('mcp-param-text');
  });

  it.each([
    ['42', undefined],
    ['42.0', undefined],
    [' 42 ', undefined],
    ['=?base64?NDI=?=', undefined],
    ['042', undefined],
    ['4.2e1', 'differs'],
    ['0x2a', 'differs'],
    ['43', 'differs'],
    ['', 'differs'],
  ])('of the number 42 may be %j: %s', (value, problem) => {
    const found = parameterHeaderProblem(declared, { deep: { n: 42 } }, { 'mcp-param-n': value });
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(problem);
  });

  it.each(['True', 'TRUE', '1', 'yes'])('of true may not be %j', (value) => {
    expect(parameterHeaderProblem(declared, { flag: true }, { 'mcp-param-flag': value })).toContain(
      'differs',
    );
  });

  it('are not written if the argument is too long', () => {
    expect(parameterHeaderLines(declared, { text: 'x'.repeat(60_000) })).toHaveLength(
      60_000 + 'mcp-param-text: \r\n'.length,
    );
    expect(() => parameterHeaderLines(declared, { text: 'x'.repeat(100_000) })).toThrow(
      'The argument text is too long: the tool wants it repeated in the header mcp-param-text.',
    );
  });
});
