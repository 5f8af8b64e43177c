import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonTexts, numberTexts } from '../../test/helpers/json-text.ts';
import { parseLossless } from './lossless.ts';

/** The numbers of a JSON text as written, in order. */
function numbersOf(text: string): string[] {
  const withoutStrings = text.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  return withoutStrings.match(/-?\d[\d.eE+-]*/g) ?? [];
}

function rebuilt(text: string): string {
  return JSON.stringify(parseLossless(text));
}

describe('a number', () => {
  it.each([
    ...['0', '-0', '1.0', '-1.0', '0.10', '0.0', '-0.0', '100.00', '10', '1.5', '-7', '0.5', '0.05'],
    ...['1E5', '1e5', '1e+5', '1.0e-2', '1e400', '-1e-400', '0.1e-7', '0e0', '5E-324'],
    ...['9007199254740993', '18446744073709551615', '-9223372036854775808', '123456789012345', '1e21'],
    ...['0.000001', '0.0000001', '0.00000012', '-0.0000001', '0.12345678901234567890', '3.14159265358979'],
    ...['123456789012345.6', '12345678901234.50', '1000000000000000000000', '999999999999999'],
  ])('written as %s stays so in any position', (text) => {
    for (const document of [text, `[${text}]`, `[1,${text}]`, `{"a":${text}}`, `{"a":{"b":[${text},"x"]}}`]) {
      expect(rebuilt(document)).toBe(document);
      expect(rebuilt(document.replace(/[:,[]/g, '$& \n'))).toBe(document);
    }
  });

  it('stays as written', () => {
    fc.assert(
      fc.property(numberTexts, (text) => {
        expect(rebuilt(`{"a":[${text}, ${text}]}`)).toBe(`{"a":[${text},${text}]}`);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('any JSON', () => {
  it('is restored with the same value and the same numbers', () => {
    const withoutRepeatedKeys = jsonTexts.value.filter((text) => !hasRepeatedOrNumericKeys(text));
    fc.assert(
      fc.property(withoutRepeatedKeys, (text) => {
        expect(JSON.parse(rebuilt(text))).toEqual(JSON.parse(text));
        expect(numbersOf(rebuilt(text))).toEqual(numbersOf(text));
      }),
      { numRuns: 500 },
    );
  });

  it('keeps keys that have a meaning in JavaScript', () => {
    const text = '{"__proto__":{"a":1.0},"constructor":2,"toString":null}';
    expect(rebuilt(text)).toBe(text);
    expect(rebuilt(text.replace('1.0', '1'))).toBe(text.replace('1.0', '1'));
  });

  it('keeps unpaired surrogates', () => {
    expect(rebuilt('["\\ud83d","\\ude00","\\ud83d\\ude00",1.0]')).toBe('["\\ud83d","\\ude00","😀",1.0]');
  });

  it('that is invalid is rejected, even with unusual numbers', () => {
    for (const text of ['', '[1.0', '{"a":1e5,}', '[01.0]', '[1.0.0]']) {
      expect(() => parseLossless(text)).toThrow(SyntaxError);
    }
  });
});

/** JavaScript drops the first of two equal keys, and moves numeric keys to the front. */
function hasRepeatedOrNumericKeys(text: string): boolean {
  const keys = [...text.matchAll(/("(?:[^"\\]|\\.)*")\s*:/g)].map(([, key]) => JSON.parse(key!) as string);
  return new Set(keys).size < keys.length || keys.some((key) => /^\d+$/.test(key));
}
