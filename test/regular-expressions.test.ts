import { describe, expect, it } from 'vitest';
import { sourceFiles } from './helpers/source.ts';
import { regularExpressionsIn, slowParts } from './helpers/super-linear.ts';

/** Reviewed by hand: the checker flags them, but they run in linear time. */
const linearAnyway: Record<string, string> = {
  '/\\$\\{input:([^}:]+)(:-[^}]*)?\\}/g':
    'used up to the last brace of a text only, so that all that begin end',
  '/\\$\\{(?:(?:env:)?([A-Za-z_]\\w*)|input:([^}:]+))(?::-([^}]*))?\\}/g': 'the same',
  '/^-+|(?<!-)-+$/g': 'begins once in a run of hyphens',
  '/(?<!\\.)\\.+$/': 'begins once in a run of dots',
  '/(?:^|[[:,])\\s*(?:-0(?![\\d.])|-?\\d+\\.\\d*0(?!\\d)|-?0\\.0{6})/':
    'begins at the start of the text, and behind characters that it does not run over',
  '/-----BEGIN [A-Z ]*PRIVATE KEY-----[\\s\\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/':
    'ends with the text at the latest',
  '/("([^"\\\\]+)"\\s*:\\s*")((?:[^"\\\\]|\\\\.)+)"/g':
    'runs over escaped quotes only, and begins with one that is not',
  '/^((?:--?)?([A-Za-z_][\\w.-]*)(?:=|:[ \\t]*(?!\\/\\/)))([\\s\\S]+)$/':
    'its last part takes all that is left',
};

/** Patterns built at run time, and why they are fast. */
const constructed: Record<string, string> = {
  'src/config/credential-text.ts': 'alternatives that are literals of the same file',
  'src/config/hosted.ts': 'one constant, for texts of 512 characters at the most',
  'src/projects/mask.ts': 'alternatives of four characters each',
};

const files = sourceFiles('src').filter(({ path }) => !path.endsWith('.test.ts'));
const found = files.map(({ path, text }) => ({ path, ...regularExpressionsIn(text) }));

describe('regular expressions that read untrusted text', () => {
  it('run in linear time', () => {
    const slow = found.flatMap(({ path, literals }) =>
      literals
        .map((literal) => ({ ...literal, written: `/${literal.source}/${literal.flags}` }))
        .filter(({ written }) => !Object.hasOwn(linearAnyway, written))
        .map((literal) => ({ ...literal, parts: slowParts(literal) }))
        .filter(({ parts }) => parts.length > 0)
        .map(({ written, line, parts }) => `${path}:${line} ${written}: ${parts.join(', ')}`),
    );
    expect(slow).toEqual([]);
  });

  it('are all found by this check', () => {
    expect(found.flatMap(({ literals }) => literals).length).toBeGreaterThan(100);
    const written = new Set(
      found.flatMap(({ literals }) => literals.map(({ source, flags }) => `/${source}/${flags}`)),
    );
    expect(Object.keys(linearAnyway).filter((each) => !written.has(each))).toEqual([]);
    const makers = found.filter((file) => file.constructed.length > 0).map(({ path }) => path);
    expect(makers).toEqual(Object.keys(constructed));
  });

  it.each([
    ['that looks for blanks before the end', /^[\t ]+|[\t ]+$/g],
    ['in which two parts can share a text', /^\d*\d*x$/],
    ['with a repetition in a repetition', /^(?:a+)+$/],
    ['that can begin inside of what it runs over', /, unless .*$/],
    ['that can begin so, in longer words', /\$\{input:([^}:]+)(:-[^}]*)?\}/g],
    ['that begins on every line and runs over lines', /^\s*(\d+)\s+x$/gm],
  ])('are found to be slow: one %s', (_what, { source, flags }) => {
    expect(slowParts({ source, flags })).not.toEqual([]);
  });

  it.each([/^[\t ]*x$/, /"code"\s*:\s*-320(20|22)\b/, /:\/\/[^/]*@/, /^initdb: removing.*\n?/gm, /\s+/g])(
    'are not reported when they are linear: %s',
    ({ source, flags }) => expect(slowParts({ source, flags })).toEqual([]),
  );
});
