import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonSyntaxError, parseJson } from './json.ts';

describe('parseJson', () => {
  it('reads whatever JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 2), (json, indent) => {
        const text = JSON.stringify(JSON.parse(json), undefined, indent);
        expect(parseJson(text).value).toEqual(JSON.parse(text));
      }),
    );
  });

  it('takes comments and trailing commas', () => {
    const text = '// top\n{ "a": [1, /* two */ 2,], "url": "http://x/*y*/", } // end';
    expect(parseJson(text).value).toEqual({ a: [1, 2], url: 'http://x/*y*/' });
  });

  it('tells which keys stand there twice, and takes the last', () => {
    const { value, repeated } = parseJson('{"s": {"a": 1,\n  "a": 2}}');
    expect(value).toEqual({ s: { a: 2 } });
    expect(repeated).toEqual([{ path: ['s', 'a'], position: { line: 2, column: 3 } }]);
  });

  it('keeps a key named __proto__ a key', () => {
    expect(Object.keys(parseJson('{"__proto__": {"a": 1}}').value as object)).toEqual(['__proto__']);
  });

  it('takes parts of any length', () => {
    const many = (part: string) => part.repeat(10_000_000 / part.length);
    expect(parseJson(`"${many('a')}"`).value).toHaveLength(10_000_000);
    expect(parseJson(`${many(' ')}1`).value).toBe(1);
    expect(parseJson(`${many('/**/')}1`).value).toBe(1);
    expect(parseJson(`/*${many('*')}*/1`).value).toBe(1);
  });

  it('skips blanks that JSON does not know', () => {
    expect(parseJson('\ufeff{\u00a0"a": 1 }').value).toEqual({ a: 1 });
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
  ])('says where %j is wrong', (text, line, column, message) => {
    const failure = attempt(text);
    expect(failure.message).toContain(message);
    expect(failure.position).toEqual({ line, column });
  });
});

function attempt(text: string): JsonSyntaxError {
  try {
    parseJson(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}
