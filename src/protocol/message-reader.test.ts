import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonTexts } from '../../test/helpers/json-text.ts';
import { turnsDuring } from '../../test/helpers/turns.ts';
import { LARGE_BYTES } from './large-walk.ts';
import { readLargeMessage, readMessage } from './message-reader.ts';

const call = (args: string, more = '') =>
  Buffer.from(
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":${args},"_meta":{"progressToken":7}}${more}}`,
  );

/** The message, or the error. */
function read(bytes: Buffer): unknown {
  try {
    return readMessage(bytes);
  } catch (error) {
    return String(error);
  }
}

const readLarge = (bytes: Buffer) => readLargeMessage(bytes).catch(String);

const MIB = 1024 * 1024;
const long = 'x'.repeat(5_000);

describe('a large message', () => {
  it('is parsed like a small one', async () => {
    await fc.assert(
      fc.asyncProperty(jsonTexts.value, async (text) => {
        for (const bytes of [call(text), call(`{"a":"${long}","b":[${text},"${long}"]}`)])
          expect(await readLarge(bytes)).toEqual(read(bytes));
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['an array instead of an object', '{"a":[}'],
    ['a missing comma', `["${long}" 1]`],
    ['an extra comma', `["${long}",]`],
    ['a missing colon', `{"a" 1}`],
    ['a missing key', `{"${long}":1,}`],
    ['a control character', `"${long}\n"`],
    ['an early end', `["${long}`],
    ['too deep nesting', `${'['.repeat(600)}${']'.repeat(600)}`],
  ])('is rejected with %s', async (_, args) => {
    expect(await readLarge(call(args))).toContain('not valid JSON');
    expect(read(call(args))).toContain('not valid JSON');
  });

  it.each([
    ['one string', `"${'x'.repeat(8 * MIB)}"`],
    ['a string of escapes', `"${'\\n'.repeat(4 * MIB)}"`],
    ['many small objects', `[${'{"a":1,"b":"xy"},'.repeat(MIB / 2)}0]`],
    ['many numbers', `[${'1,'.repeat(4 * MIB)}0]`],
  ])('yields to other work: %s', async (_, args) => {
    const bytes = call(args);
    expect(bytes.length).toBeGreaterThan(LARGE_BYTES);
    const reading = readLargeMessage(bytes);
    expect(await turnsDuring(reading)).toBeGreaterThanOrEqual(Math.floor(bytes.length / MIB) - 1);
    // Comparing the bytes is slow.
    expect({ ...(await reading), bytes: 0 }).toEqual({ ...readMessage(bytes), bytes: 0 });
  });

  it('is rejected instead of rebuilt if its keys are ambiguous, or if it has very many members', async () => {
    const args = `"${'x'.repeat(LARGE_BYTES)}"`;
    expect(await readLarge(call(args, ',"id":2'))).toContain('duplicate keys');
    const members = Array.from({ length: 20_000 }, (_, index) => `"k${index}":1`).join();
    expect(await readLarge(call(args, `,${members}`))).toContain('more than 10000 members');
  });

  it('cannot be a batch', async () => {
    expect(await readLarge(Buffer.from(`[${call('1').toString()}]`))).toContain('A batch may have');
  });
});
