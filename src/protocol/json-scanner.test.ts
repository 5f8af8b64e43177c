import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonTexts } from '../../test/helpers/json-text.ts';
import { JsonScanner, JsonSyntaxError } from './json-scanner.ts';

/** The syntax error, or undefined for valid JSON. */
function problem(bytes: Uint8Array): JsonSyntaxError | undefined {
  const scanner = new JsonScanner(bytes);
  try {
    scanner.skip(0);
    scanner.expectEnd();
    return undefined;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error;
    throw error;
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A small parser on top of the scanner: it finds the same values if every span is right. */
function valueBySpans(scanner: JsonScanner): unknown {
  const bytes = Buffer.from(scanner.bytes);
  const first = scanner.peek();
  if (first === 0x7b) {
    const members: [string, unknown][] = [];
    scanner.object((start, end, escaped) => {
      const raw = bytes.toString('utf8', start, end);
      expect(escaped).toBe(raw.includes('\\'));
      members.push([JSON.parse(`"${raw}"`) as string, valueBySpans(scanner)]);
    });
    return Object.fromEntries(members);
  }
  if (first === 0x5b) {
    const elements: unknown[] = [];
    scanner.array(() => elements.push(valueBySpans(scanner)));
    return elements;
  }
  const { start, end } = scanner.span();
  return JSON.parse(bytes.toString('utf8', start, end));
}

const byteThatMatters = fc.constantFrom(...Buffer.from('"\\{}[]:,-+.eE019utrnfalse \n\0\x1f\x7f'));
const anyByte = fc.oneof({ arbitrary: byteThatMatters, weight: 4 }, fc.nat(255));
const damages = fc.record({
  at: fc.nat(2_000),
  removed: fc.nat(2),
  inserted: fc.array(anyByte, { maxLength: 2 }),
});

describe('the JSON scanner', () => {
  it('accepts all JSON', () => {
    fc.assert(
      fc.property(jsonTexts.value, (text) => {
        expect(problem(Buffer.from(text))).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  it('accepts damaged JSON exactly if JSON.parse does', () => {
    fc.assert(
      fc.property(jsonTexts.value, fc.array(damages, { minLength: 1, maxLength: 2 }), (text, list) => {
        const bytes = [...Buffer.from(text)];
        for (const { at, removed, inserted } of list)
          bytes.splice(at % (bytes.length + 1), removed, ...inserted);
        const damaged = Buffer.from(bytes);
        fc.pre(isUtf8(damaged));
        expect(problem(damaged) === undefined).toBe(parses(damaged.toString()));
      }),
      { numRuns: 3_000 },
    );
  });

  it('accepts any bytes exactly if JSON.parse does', () => {
    fc.assert(
      fc.property(fc.array(byteThatMatters, { maxLength: 12 }), (list) => {
        const bytes = Buffer.from(list);
        expect(problem(bytes) === undefined).toBe(parses(bytes.toString()));
      }),
      { numRuns: 3_000 },
    );
  });

  it('finds every key and value at its position', () => {
    fc.assert(
      fc.property(jsonTexts.value, (text) => {
        const scanner = new JsonScanner(Buffer.from(text));
        expect(valueBySpans(scanner)).toEqual(JSON.parse(text));
        scanner.expectEnd();
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['', 'unexpected end at byte 0'],
    ['  ', 'unexpected end at byte 2'],
    ['{"a":1', "expected ',' or '}' at byte 6"],
    ['{"a":1,}', 'expected a key at byte 7'],
    ['[1,]', 'unexpected character at byte 3'],
    ['[1 2]', "expected ',' or ']' at byte 3"],
    ['{"a" 1}', "expected ':' at byte 5"],
    ['{} {}', 'unexpected text after the value at byte 3'],
    ['"a\nb"', 'control character in a string at byte 2'],
    ['"\\x"', 'bad escape at byte 1'],
    ['"\\u12g4"', 'bad \\u escape at byte 1'],
    ['"abc', 'unterminated string at byte 4'],
    ['1.', 'bad number at byte 0'],
    ['1e+', 'bad number at byte 0'],
    ['01', 'unexpected text after the value at byte 1'],
    ['nul', 'unexpected character at byte 0'],
    ['\uFEFF{}', 'unexpected character at byte 0'],
  ])('reports what is wrong with %j, and where', (text, message) => {
    expect(problem(Buffer.from(text))?.message).toBe(message);
  });

  it('accepts at most 512 levels of nesting', () => {
    const nested = (levels: number) =>
      Buffer.from(`${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`);
    expect(problem(nested(512))).toBeUndefined();
    expect(problem(nested(514))?.message).toMatch(/^nested deeper than 512 levels at byte \d+$/);
    expect(problem(Buffer.from('['.repeat(10_000_000)))?.message).toMatch(/^nested deeper/);
  });
});

it('finds special characters in long strings at any memory offset', () => {
  const special = fc.constantFrom(
    '"',
    '\\',
    '\\n',
    '\\u00e9',
    '\n',
    '\0',
    '\x1f',
    '\x7f',
    'é',
    '€',
    '😀',
    '!',
    ' ',
    '#',
    '[',
    ']',
  );
  fc.assert(
    fc.property(
      fc.nat({ max: 7 }),
      fc.nat({ max: 80 }),
      special,
      fc.nat({ max: 80 }),
      (offset, before, mark, after) => {
        const text = `"${'é'.repeat(before % 3)}${'x'.repeat(before)}${mark}${'y'.repeat(after)}"`;
        const whole = Buffer.from(`${' '.repeat(offset)}${text}`);
        const bytes = whole.subarray(offset);
        expect(problem(bytes) === undefined).toBe(parses(text));
      },
    ),
    { numRuns: 3_000 },
  );
});
