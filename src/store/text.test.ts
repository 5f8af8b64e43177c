import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { connectTo, freshDatabase } from '../../test/helpers/database.ts';
import { storableJson, storableText } from './text.ts';

describe('text for the database', () => {
  it.each([
    ['a\0b', 'ab'],
    ['half \ud800', 'half \ufffd'],
    ['whole 😀', 'whole 😀'],
  ])('%j becomes %j', (text, kept) => {
    expect(storableText(text)).toBe(kept);
  });

  it.each([
    ['"\\u0000"', '""'],
    ['"\\\\u0000"', '"\\\\u0000"'],
    ['"\\\\\\u0000"', '"\\\\"'],
    ['"\\ud83d\\ude00"', '"\\ud83d\\ude00"'],
    ['"\\ud83d"', '"\\ufffd"'],
    ['"\\ude00\\ud83d"', '"\\ufffd\\ufffd"'],
    ['"\\ud83d\\ud83d\\ude00"', '"\\ufffd\\ud83d\\ude00"'],
    ['"\\u00e4\\n"', '"\\u00e4\\n"'],
  ])('JSON %s becomes %s', (json, kept) => {
    expect(storableJson(json)).toBe(kept);
  });

  it('is always accepted by the database', async () => {
    await using database = await freshDatabase();
    await using client = await connectTo(database.name);
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), fc.boolean(), async (text, isEscaped) => {
        const json = JSON.stringify(text);
        const sent = isEscaped
          ? json.replaceAll(/[^\\"\w]/g, (unit) => (unit.length === 1 ? escaped(unit) : unit))
          : json;
        const { rows } = await client.query('SELECT $1::jsonb AS kept', [storableJson(sent)]);
        expect(rows[0].kept).toBe(storableText(text));
      }),
      { numRuns: 300, examples: [['\ud800\0\\u0000', true]] },
    );
  });
});

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
