import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConfigSyntaxError, parseJson } from './json.ts';

describe('parseJson', () => {
  it('reads any output of JSON.stringify', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 2), (json, indent) => {
        const text = JSON.stringify(JSON.parse(json), undefined, indent);
        expect(parseJson(text).value).toEqual(JSON.parse(text));
      }),
    );
  });

  it('accepts comments and trailing commas', () => {
    const text = '// top\n{ "a": [1, /* two */ 2,], "url": "http://x/*y*/", } // end';
    expect(parseJson(text).value).toEqual({ a: [1, 2], url: 'http://x/*y*/' });
  });

  it('reports duplicate keys and uses the last', () => {
    const { value, repeated } = parseJson('{"s": {"a": 1,\n  "a": 2}}');
    expect(value).toEqual({ s: { a: 2 } });
    expect(repeated).toEqual([{ path: ['s', 'a'], position: { line: 2, column: 3 } }]);
  });

  it('treats __proto__ as an ordinary key', () => {
    expect(Object.keys(parseJson('{"__proto__": {"a": 1}}').value as object)).toEqual(['__proto__']);
  });

  it('accepts tokens of any length', () => {
    const many = (part: string) => part.repeat(10_000_000 / part.length);
    expect(parseJson(`"${many('a')}"`).value).toHaveLength(10_000_000);
    expect(parseJson(`${many(' ')}1`).value).toBe(1);
    expect(parseJson(`${many('/**/')}1`).value).toBe(1);
    expect(parseJson(`/*${many('*')}*/1`).value).toBe(1);
  });

  it('skips white space that JSON does not allow', () => {
    expect(parseJson('\ufeff{\u00a0"a": 1 }').value).toEqual({ a: 1 });
    expect(parseJson('{"a":\u00a05000, "b":true\u00a0, "c": [\u00a0-1.5e3,\u2028null\u00a0]}').value).toEqual(
      {
        a: 5000,
        b: true,
        c: [-1500, null],
      },
    );
    expect(parseJson('\u00a0false\u3000').value).toBe(false);
    for (const text of [
      '{"a": 1 \u00a02}',
      '[1 \u00a0true]',
      '{\u00a0true: 1}',
      '{"a":\u00a0nul}',
      '1\u00a02',
    ])
      expect(() => parseJson(text)).toThrow(ConfigSyntaxError);
  });

  it.each([
    ['', 1, 1, 'a value, found the end of the file'],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3, 'expected "," or "}"'],
    ['{"a": tru}', 1, 7, 'unexpected text'],
    ["{'a': 1}", 1, 2, 'put keys and strings in double quotes'],
    ['{"a" 1}', 1, 6, 'expected ":" after the key, found "1"'],
    ['{"a": "open\n}', 1, 7, 'does not end on its line'],
    ['{"path": "C:\\users"}', 1, 10, 'write a backslash as \\\\'],
    ['[1, 2', 1, 6, 'the end of the file'],
    ['[,]', 1, 2, 'expected a value, found ","'],
    ['{} {}', 1, 4, 'after the end'],
    ['{ /* open', 1, 3, 'the comment that starts here does not end'],
    ['['.repeat(500), 1, 102, 'nested deeper'],
  ])('reports the position of the error in %j', (text, line, column, message) => {
    const failure = attempt(text);
    expect(failure.message).toContain(message);
    expect(failure.position).toEqual({ line, column });
  });
});

function attempt(text: string): ConfigSyntaxError {
  try {
    parseJson(text);
  } catch (error) {
    if (error instanceof ConfigSyntaxError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}
