import { describe, expect, it } from 'vitest';
import { parseBounded } from './bounded-parse.ts';
import { parseLossless } from './lossless.ts';

const list = (unit: string, count: number) => `[${`${unit},`.repeat(count)}0]`;

describe('a value to build', () => {
  it.each(['1', '{}', '[]', '{"a":1}', '""'])('is rejected with very many of %s', (unit) => {
    const text = list(unit, 600_000);
    for (const parse of [parseBounded, parseLossless])
      expect(() => parse(text)).toThrow('more than 500000 values');
  });

  it('may contain many values, but fewer if a number must keep its text', () => {
    expect(parseBounded(list('1', 400_000))).toHaveLength(400_001);
    expect(parseLossless(list('1', 400_000))).toHaveLength(400_001);
    expect(() => parseLossless(list('1', 400_000).replace('0]', '1e400]'))).toThrow(
      'more than 100000 values',
    );
    expect(() => parseLossless(list('1e1', 110_000))).toThrow('more than 100000 values');
    expect(JSON.stringify(parseLossless(list('1e1', 20_000)))).toBe(list('1e1', 20_000));
  });

  it.each(['x', ',', '3.141592653589793,[{:', '\\', '\\"', '{"a":"b"},'])(
    'may contain a long text of %s',
    (unit) => {
      const long = unit.repeat(600_000);
      for (const parse of [parseBounded, parseLossless])
        expect(parse(JSON.stringify([long, 1]))).toEqual([long, 1]);
    },
  );

  it('may contain only as many quotes in its texts as can be scanned quickly', () => {
    expect(() => parseBounded(JSON.stringify('"'.repeat(5_000_000)))).toThrow('more than 500000 values');
  });

  it('is left to the parser if a string is not terminated', () => {
    expect(() => parseBounded(`["${'x'.repeat(100_000)}`)).toThrow(SyntaxError);
  });
});
