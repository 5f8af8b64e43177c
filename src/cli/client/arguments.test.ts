import { describe, expect, it } from 'vitest';
import { readObject, readWords } from './arguments.ts';

describe('key=value arguments', () => {
  it('are JSON if possible and otherwise text, if the tool has no schema', () => {
    const words = ['a=null', 'b=1', 'c=true', 'd="1"', 'e=[1,2]', 'f=text', 'g=', 'h=x=y'];
    const values = { a: null, b: 1, c: true, d: '1', e: [1, 2], f: 'text', g: '', h: 'x=y' };
    for (const schema of [undefined, null, { type: 'object' }, { properties: { a: {}, b: true } }]) {
      expect(readWords(words, schema)).toEqual(values);
    }
  });

  it.each<[schema: object, text: string, value: unknown]>([
    [{ type: 'string' }, '007', '007'],
    [{ type: 'string' }, '42', '42'],
    [{ type: 'string' }, 'true', 'true'],
    [{ type: 'string' }, '"quoted"', '"quoted"'],
    [{ type: 'string' }, '{"a":1}', '{"a":1}'],
    [{ enum: ['1', '2'] }, '1', '1'],
    [{ const: '1' }, '1', '1'],
    [{ type: ['string', 'null'] }, 'null', 'null'],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, '12', '12'],
    [{ $ref: '#/$defs/Id' }, '12', '12'],
    [{ allOf: [{ description: 'x' }, { $ref: '#/$defs/Id' }] }, '12', '12'],
    [{ type: ['string', 'number'] }, '12', 12],
    [{ type: ['string', 'number'] }, '012', '012'],
    [{ type: 'number' }, '1.5', 1.5],
    [{ type: 'integer' }, '15', 15],
    [{ type: 'boolean' }, 'false', false],
    [{ type: 'object' }, '{"a":1}', { a: 1 }],
    [{ type: 'array' }, '["a"]', ['a']],
    [{ type: ['integer', 'null'] }, 'null', null],
    [{ type: 'unheard of' }, '1', 1],
    [{ $ref: '#/$defs/Loop' }, '1', 1],
    [{ $ref: 'https://example.com/schema' }, '1', 1],
  ])('are converted to %j: %s', (schema, text, value) => {
    const $defs = { Id: { type: 'string' }, Loop: { $ref: '#/$defs/Loop' } };
    expect(readWords([`key=${text}`], { type: 'object', properties: { key: schema }, $defs })).toEqual({
      key: value,
    });
  });

  it.each([
    [{ type: 'number' }, 'two', '"key" must be a number, and "two" is not.'],
    [{ type: 'integer' }, '1.5', '"key" must be a whole number, and "1.5" is not.'],
    [{ type: 'boolean' }, 'yes', '"key" must be true or false, and "yes" is not.'],
    [{ type: 'object' }, '[1]', '"key" must be a JSON object, and "[1]" is not.'],
    [{ type: 'array' }, 'a,b', '"key" must be a JSON array, and "a,b" is not.'],
    [{ type: ['integer', 'null'] }, 'x', '"key" must be a whole number or null, and "x" is not.'],
  ])('are rejected if %j is expected and %s is given', (schema, text, message) => {
    expect(() => readWords([`key=${text}`], { properties: { key: schema } })).toThrow(message);
  });

  it('need a key', () => {
    expect(() => readWords(['text'], undefined)).toThrow('key=value');
    expect(() => readWords(['=text'], undefined)).toThrow('key=value');
  });
});

it('a single argument that starts like a JSON object contains all arguments', () => {
  expect(readObject([' {"a": 1}'])).toEqual({ a: 1 });
  expect(readObject(['a={}'])).toBeUndefined();
  expect(() => readObject(['{"a":'])).toThrow('not a JSON object');
});
