import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parsePublicUri, publicUri, templateMatcher, uriPrefix } from './uris.ts';

const texts = fc.string({ unit: 'binary' });

describe('public URIs', () => {
  it('resolve to the server and its own URI, whatever both are [G10]', () => {
    fc.assert(
      fc.property(texts, fc.oneof(texts, fc.webUrl()), (server, ownUri) => {
        expect(parsePublicUri(publicUri(server, ownUri))).toEqual({ server, ownUri });
      }),
    );
  });

  it('of different resources are different', () => {
    const few = fc.string({ unit: fc.constantFrom('a', '/', '%', ':', '2F'), maxLength: 4 });
    fc.assert(
      fc.property(few, few, few, few, (server, uri, otherServer, otherUri) => {
        const same = server === otherServer && uri === otherUri;
        expect(publicUri(server, uri) === publicUri(otherServer, otherUri)).toBe(same);
      }),
      { numRuns: 1_000 },
    );
  });

  it('prefix the server’s own URI with the server', () => {
    expect(publicUri('files', 'file:///a b/ü.txt')).toBe('resource://files/file:///a b/ü.txt');
    expect(publicUri('my files', 'x:{name}')).toBe('resource://my%20files/x:{name}');
  });

  it('have a prefix without template expressions', () => {
    fc.assert(
      fc.property(texts, (server) => {
        expect(uriPrefix(server, 'x:y')).not.toMatch(/[{}]/);
      }),
    );
  });

  it('can be told from other URIs', () => {
    expect(parsePublicUri('file:///a')).toBeUndefined();
    expect(parsePublicUri('resource://files')).toBeUndefined();
    expect(parsePublicUri('resource://%ZZ/a')).toBeUndefined();
    expect(parsePublicUri('RESOURCE://files/a')).toBeUndefined();
  });
});

interface Piece {
  template: string;
  uri: string;
}

const literals = fc
  .string({ unit: fc.constantFrom('a', 'b', '/', ':', '.', '*', '(', '[', '+', '?', '\\', '^', '$', '|') })
  .map((text): Piece => ({ template: text, uri: text }));
const values = fc.string({ unit: fc.constantFrom('a', 'b', 'é', ' ', '.', '-'), maxLength: 5 });
const paths = fc.array(values, { maxLength: 3 }).map((list) => list.map(encodeURIComponent).join('/'));
const expressions: fc.Arbitrary<Piece> = fc.oneof(
  values.map((value) => ({ template: '{v}', uri: encodeURIComponent(value) })),
  fc
    .tuple(values, values)
    .map(([v, w]) => ({ template: '{v,w}', uri: [v, w].map(encodeURIComponent).join(',') })),
  paths.map((path) => ({ template: '{+v}', uri: path })),
  paths.map((path) => ({ template: '{/v*}', uri: `/${path}` })),
  paths.map((path) => ({ template: '{v*}', uri: path })),
  values.map((value) => ({ template: '{?v}', uri: `?v=${encodeURIComponent(value)}` })),
  values.map((value) => ({ template: '{&v}', uri: `&v=${encodeURIComponent(value)}` })),
  values.map((value) => ({ template: '{#v}', uri: `#${encodeURIComponent(value)}` })),
);

describe('a template', () => {
  it('matches every URI that it expands to', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(literals, expressions)), (pieces) => {
        const template = pieces.map((piece) => piece.template).join('');
        expect(templateMatcher(template)(pieces.map(({ uri }) => uri).join(''))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['file:///{name}.txt', 'file:///a.txt', 'file:///a/b.txt'],
    ['file:///{+path}', 'file:///a/b.txt', 'https:///a'],
    ['db://{table}/{id}', 'db://users/7', 'db://users'],
    ['a.b{x}', 'a.b', 'acb'],
    ['a{x', 'a{x', 'ab'],
    ['{a}-{b}', '1-2-3', '1/2-3/4'],
    ['', '', 'a'],
  ])('%s matches %s and not %s', (template, fits, fitsNot) => {
    expect(templateMatcher(template)(fits)).toBe(true);
    expect(templateMatcher(template)(fitsNot)).toBe(false);
  });

  it('is matched quickly, even if a server wrote it to be slow', () => {
    const uri = `${'-'.repeat(5_000)}!`;
    expect(templateMatcher('{a}'.repeat(60))(`${uri}/`)).toBe(false);
    expect(templateMatcher(`${'{a}-'.repeat(60)}x`)(uri)).toBe(false);
    expect(templateMatcher('{+a}{b}'.repeat(60))(uri)).toBe(true);
  });
});
