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

  it('may hold a long text, up to a limit', () => {
    const long = 'x'.repeat(8 * 1024 * 1024);
    expect(parseLossless(JSON.stringify([long]))).toEqual([long]);
    expect(() => parseBounded(JSON.stringify(long + long))).toThrow('longer than 16777216 characters');
  });
});
