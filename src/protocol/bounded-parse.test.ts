import { describe, expect, it } from 'vitest';
import { parseBounded } from './bounded-parse.ts';
import { parseLossless } from './lossless.ts';

const list = (unit: string, count: number) => `[${`${unit},`.repeat(count)}0]`;

describe('what has to be built', () => {
  it.each(['1', '{}', '[]', '{"a":1}', '""'])('is refused with a great many of %s in it', (unit) => {
    const text = list(unit, 600_000);
    for (const parse of [parseBounded, parseLossless])
      expect(() => parse(text)).toThrow('more than 500000 values');
  });

  it('may have many values, but not as many where a number has to be kept as its text', () => {
    expect(parseBounded(list('1', 400_000))).toHaveLength(400_001);
    expect(parseLossless(list('1', 400_000))).toHaveLength(400_001);
    expect(() => parseLossless(list('1', 400_000).replace('0]', '1e400]'))).toThrow(
      'more than 100000 values',
    );
    expect(() => parseLossless(list('1e1', 110_000))).toThrow('more than 100000 values');
    expect(JSON.stringify(parseLossless(list('1e1', 20_000)))).toBe(list('1e1', 20_000));
  });

  it.each(['x', ',', '3.141592653589793,[{:', '\\', '\\"', '{"a":"b"},'])(
    'may hold a long text of %s',
    (unit) => {
      const long = unit.repeat(600_000);
      for (const parse of [parseBounded, parseLossless])
        expect(parse(JSON.stringify([long, 1]))).toEqual([long, 1]);
    },
  );

  it('may not hold more quotes in its texts than can be passed in a moment', () => {
    expect(() => parseBounded(JSON.stringify('"'.repeat(5_000_000)))).toThrow('more than 500000 values');
  });

  it('is left to the parser where a text in it has no end', () => {
    expect(() => parseBounded(`["${'x'.repeat(100_000)}`)).toThrow(SyntaxError);
  });
});
