import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { folded, looseSpellings, spellings } from './spellings.ts';

describe('a URI', () => {
  it.each([
    ['written plainly', 'file:///docs/a.txt', 'file:///docs/a.txt'],
    ['with escapes', 'file:///secre%74/a', 'file:///secret/a'],
    ['with escapes of escapes', 'file:///secre%252574/a', 'file:///secret/a'],
    ['with an escaped slash', 'file:///secret%2Fa', 'file:///secret/a'],
    ['with an escaped backslash', 'file:///secret%5ca', 'file:///secret/a'],
    ['with bytes that are not UTF-8', 'file:///secre%74%2f%ff%2f..%2fa', 'file:///secret/a'],
    ['with folders that it leaves', 'file:///pub/../secret/a', 'file:///secret/a'],
    ['with escaped dots', 'file:///pub/%2e%2E/secret/a', 'file:///secret/a'],
    ['with escapes behind folders that it leaves', 'file:///x%2fy/../secre%74', 'file:///secret'],
    ['that leaves its host', 'notes://pub/../secret/a', 'notes://secret/a'],
    ['that leaves the root', 'file:///../../secret/a', 'file:///secret/a'],
    ['without slashes, that leaves a folder', 'notes:pub/../secret/a', 'notes://secret/a'],
    ['without a scheme, that leaves a folder', 'pub/../secret/a', 'secret/a'],
    ['with backslashes', 'file:\\\\\\secret\\a', 'file:///secret/a'],
    ['with repeated slashes', 'file:////secret///a', 'file:///secret/a'],
    ['with one slash', 'file:/secret/a', 'file:///secret/a'],
    ['of a file on this host', 'file://localhost/secret/a', 'file:///secret/a'],
    ['with a final slash', 'file:///secret/', 'file:///secret'],
    ['with final dots of a folder', 'file:///secret./a', 'file:///secret/a'],
    ['with a default port', 'https://h.example:443/a', 'https://h.example/a'],
    ['with a final dot of the host', 'https://h.example./a', 'https://h.example/a'],
    ['with an address in other numbers', 'http://0x7f.1/a', 'http://127.0.0.1/a'],
    ['with capitals in the host', 'HTTPS://H.Example/a', 'https://h.example/a'],
    ['with credentials', 'postgres://user:word@h/db', 'postgres://h/db'],
    ['with line breaks', 'file:///sec\nret/a', 'file:///secret/a'],
    ['with spaces around', ' file:///secret/a ', 'file:///secret/a'],
    ['with plus signs in a query', 'db://t?name=a+b', 'db://t?name=a b'],
    ['without a path', 'https://h.example', 'https://h.example/'],
  ])('%s is read as others read it', (_what, uri, reading) => {
    expect(spellings(uri)).toContain(reading);
    expect(spellings(uri)![0]).toBe(uri);
  });

  it.each([
    ['with a query', 'file:///secret/a?x=/pub', 'file:///secret/a'],
    ['with a fragment', 'notes://a b#x', 'notes://a b'],
    ['with an escaped query', 'file:///secret/a%3Fx', 'file:///secret/a'],
    ['with another host of a file', 'file://h.example/secret/a', 'file:///secret/a'],
  ])('%s is read as servers do that ignore a part', (_what, uri, reading) => {
    expect(spellings(uri)).not.toContain(reading);
    expect(looseSpellings(uri)).toContain(reading);
  });

  it('that is written plainly has one reading', () => {
    for (const uri of ['file:///docs/a.txt', 'notes://team/2026/plan', 'https://h.example/a-b_c/d.e.f'])
      expect(looseSpellings(uri)).toEqual([uri]);
  });

  it('with plain text is read quickly as what all readings make of it', () => {
    const parts = fc.array(fc.constantFrom('a', 'b.c', 'd-e', 'F_1', '..', '.', 'g.'), {
      minLength: 1,
      maxLength: 4,
    });
    const starts = fc.constantFrom(
      'file://',
      'notes://host',
      'https://h.example',
      'http://127.1',
      'file://host',
      'x:',
    );
    fc.assert(
      fc.property(starts, parts, (start, path) => {
        const uri = `${start}/${path.join('/')}`;
        fc.pre(looseSpellings(uri)!.length === 1);
        // A fragment, which is cut off again, makes it read in full.
        const full = looseSpellings(`${uri}#`)!.filter((text) => !text.endsWith('#'));
        const known = [uri, uri.toLowerCase()];
        expect(full.map((text) => text.replace(/\/$/, '')).filter((text) => !known.includes(text))).toEqual(
          [],
        );
      }),
      { numRuns: 2_000 },
    );
  });

  it('has no known readings, if they would be too many or too long', () => {
    expect(spellings(`file:///${'%25'.repeat(60)}41`)).toBeDefined();
    let nested = '%41';
    for (let count = 0; count < 60; count++) nested = nested.replace('%', '%25');
    expect(spellings(`file:///${nested}`)).toBeUndefined();
    expect(looseSpellings(`file:///${nested}`)).toBeUndefined();
    expect(spellings(`file:///a b${'c'.repeat(20_000)}`)).toBeUndefined();
    expect(spellings(`file:///${'c'.repeat(20_000)}`)).toHaveLength(1);
  });

  it('can be anything', () => {
    const special = fc.constantFrom(...'%25/\\:.?#@+ *'.split(''));
    const unit = fc.oneof(
      special,
      fc.nat(0xffff).map((code) => String.fromCharCode(code)),
    );
    fc.assert(
      fc.property(fc.string({ unit }), (uri) => {
        expect(looseSpellings(uri)?.[0] ?? uri).toBe(uri);
      }),
    );
  });
});

describe('texts that somebody may take for each other', () => {
  it.each([
    ['SECRET', 'secret'],
    ['ſecret', 'secret'],
    ['\u212Aey', 'key'],
    ['caf\u00e9', 'cafe\u0301'],
    ['ＳＥＣＲＥＴ', 'secret'],
    ['straße', 'STRASSE'],
    ['ΟΔΟΣ', 'οδος'],
  ])('are folded to the same: %s and %s', (one, other) => {
    expect(folded(one)).toBe(folded(other));
  });

  it('are folded alike in whatever text they are', () => {
    // In lower case, a sigma depends on what follows.
    expect(folded('ΟΔΟΣΑ').startsWith(folded('ΟΔΟΣ'))).toBe(true);
    const texts = fc.string({ unit: fc.constantFrom('Σ', 'σ', 'ς', 'a', 'ß', 'İ', 'ﬁ', 'É', ' ') });
    fc.assert(
      fc.property(texts, texts, (one, other) => {
        expect(folded(one + other)).toBe(folded(one) + folded(other));
      }),
    );
  });
});
