import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sourceFiles } from '../../test/helpers/source.ts';
import { jsonText, oneLine, printable, table } from './output.ts';

/** C0 except line breaks and tabs, DEL, C1, and bidirectional controls. */
const steering = /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
const texts = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '\u001b[31m',
        '\u001b]0;title\u0007',
        '\u009b2J',
        '\u202e',
        '\u2066',
        '\r',
        '\r\n',
        '\n',
        '\t',
        '\u007f',
      ),
    ),
  )
  .map((parts) => parts.join(''));

describe('printed text', () => {
  it('contains no terminal control characters', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(printable(text)).not.toMatch(steering);
        expect(oneLine(text)).not.toMatch(/[\n\t]/);
        expect(table([[text, 'x']])).not.toMatch(/[\n\t]/);
      }),
    );
  });

  it('is equivalent JSON without terminal control characters', () => {
    fc.assert(
      fc.property(fc.dictionary(texts, texts), (value) => {
        expect(jsonText(value, 2)).not.toMatch(steering);
        expect(JSON.parse(jsonText(value))).toEqual(value);
      }),
    );
  });

  it.each([
    ['plain text — ä 漢字 🙂\n\tindented', 'plain text — ä 漢字 🙂\n\tindented'],
    ['\u001b[1;31mred\u001b[0m', 'red'],
    ['a\r\nb\rc', 'a\nb\\u000dc'],
    ['\u001b[2J\u009b2J\u007f', '\\u001b[2J\\u009b2J\\u007f'],
    ['user\u202etxt.exe\u2069', 'user\\u202etxt.exe\\u2069'],
  ])('shows %j as %j', (text, shown) => expect(printable(text)).toBe(shown));

  it('stays aligned in its columns', () => {
    expect(
      table([
        ['a\u001b[31mb\u001b[0m', 'x'],
        ['a\nb\u0007', 'y'],
      ]),
    ).toBe('ab         x\na b\\u0007  y');
  });
});

it('only these modules write to the terminal; all others use print, complain and similar', () => {
  const writers = [...sourceFiles('src/cli'), ...sourceFiles('src/gateway/stdio')]
    .filter(
      ({ path, text }) => !path.endsWith('.test.ts') && /\b(?:stdout|stderr)\.write\(|\bconsole\./.test(text),
    )
    .map(({ path }) => path);
  expect(writers).toEqual([
    'src/cli/chat/actions.ts',
    'src/cli/chat/text.ts',
    'src/cli/output.ts',
    'src/cli/prompt.ts',
    'src/cli/run.ts',
    'src/gateway/stdio/client.ts',
  ]);
});
