import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headerProblem, headerValueOf, isTooLongForHeader, textOfHeader } from './header-values.ts';

const texts = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => text.toWellFormed()),
  fc.string(),
  fc.constantFrom(
    '',
    ' ',
    ' a',
    'a ',
    'a b',
    '\t',
    'a\tb',
    '=?base64?',
    '=?base64??=',
    '=?base64?YQ==?=',
    '?=',
    '\r\n',
  ),
);

describe('a text as a header value', () => {
  it('is decoded to the same text', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(textOfHeader(headerValueOf(text))).toBe(text);
      }),
      { numRuns: 3_000 },
    );
  });

  it('is visible ASCII without surrounding blanks, so that proxies do not change it', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(headerValueOf(text)).toMatch(/^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/);
      }),
    );
  });

  it.each(['echo', 'a b', 'resource://x/y?z=1#a', '=?base64?', 'x=?base64?YQ==?=', '=?BASE64?YQ==?='])(
    'stays unchanged if possible: %s',
    (text) => expect(headerValueOf(text)).toBe(text),
  );

  it.each([
    ['ä', '=?base64?w6Q=?='],
    ['', '=?base64??='],
    [' a', '=?base64?IGE=?='],
    ['=?base64?YQ==?=', '=?base64?PT9iYXNlNjQ/WVE9PT89?='],
  ])('is base64 otherwise: %j', (text, value) => expect(headerValueOf(text)).toBe(value));
});

describe('the text of a header', () => {
  it.each([
    ['  a b\t', 'a b'],
    [' =?base64?YQ==?= ', 'a'],
    ['=?base64?77u/YQ==?=', '\ufeffa'],
    ['=?base64?YQ==', '=?base64?YQ=='],
  ])('%j is %j', (value, text) => expect(textOfHeader(value)).toBe(text));

  it.each([
    ['too short', '=?base64?YQ=?='],
    ['without padding', '=?base64?YQ?='],
    ['in the URL alphabet', '=?base64?_-_-?='],
    ['with blanks', '=?base64?Y Q==?='],
    ['that is not UTF-8', '=?base64?/w==?='],
    ['of a lone surrogate', '=?base64?7aCA?='],
  ])('is invalid in base64 %s', (_what, value) => expect(textOfHeader(value)).toBeUndefined());

  it('is decoded from base64 up to the length of the longest URI', () => {
    const longest = 'ä'.repeat(32 * 1024);
    expect(isTooLongForHeader(longest)).toBe(false);
    expect(textOfHeader(headerValueOf(longest))).toBe(longest);
    const tooLong = 'x'.repeat(88 * 1024 + 1);
    expect(textOfHeader(tooLong)).toBeUndefined();
    expect(headerProblem(tooLong)).toBe('is longer than 90112 characters');
    expect(isTooLongForHeader(tooLong)).toBe(true);
    expect(isTooLongForHeader('ä'.repeat(40 * 1024))).toBe(true);
  });

  it('may contain blanks', () => {
    const blanks = ' \t'.repeat(20_000);
    expect(textOfHeader(`${blanks}a${blanks}b${blanks}`)).toBeUndefined();
    expect(textOfHeader(` a${blanks}b\t`)).toBe(`a${blanks}b`);
    expect(textOfHeader(blanks)).toBe('');
  });
});
