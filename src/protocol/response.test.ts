import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCuts, cut } from '../../test/helpers/chunks.ts';
import { jsonTexts, objectText } from '../../test/helpers/json-text.ts';
import { findResponseId, withResponseId, withResultMembers } from './response.ts';

/** The payload of a response may look like its envelope, as a value or as a text. */
const payloads = fc.oneof(
  jsonTexts.value,
  fc.constantFrom(
    ...['{"id":7}', '{"a":1,"id":7}', '[{"a":1,"id":7}]', '{"a":{"jsonrpc":"2.0","id":7}}', '7', '[7]'],
    ...['",\\"id\\":7}"', '"\\\\"', '{"id":7,"jsonrpc":"2.0"}', '"{\\"result\\":1,\\"id\\":7}"'],
  ),
);
/** Members outside the envelope, which are rare. */
const others = fc.array(
  fc
    .tuple(fc.constantFrom('extra', 'Id2', '_id', 'i d'), payloads)
    .map(([key, value]) => `${JSON.stringify(key)}:${value}`),
  { maxLength: 2, size: 'xsmall' },
);
const answers = fc
  .record({ id: fc.nat(), outcome: fc.constantFrom('result', 'error'), payload: payloads, others })
  .chain(({ id, outcome, payload, others: more }) =>
    fc.record({
      id: fc.constant(id),
      isError: fc.constant(outcome === 'error'),
      text: objectText(['"jsonrpc":"2.0"', `"id":${id}`, `"${outcome}":${payload}`, ...more]),
    }),
  );

const rareCuts = fc.oneof(fc.constant<number[]>([]), fc.array(fc.nat(200), { maxLength: 2 }), anyCuts);

/** The pieces of a message as a channel gives them: none is empty. */
function pieces(text: string, cuts: Parameters<typeof cut>[1]): Buffer[] {
  return cut(Buffer.from(text), cuts).filter(({ length }) => length > 0);
}

describe('the id of a response', () => {
  it('is found at its position or not found, for any order of keys and any split', () => {
    let found = 0;
    fc.assert(
      fc.property(answers, rareCuts, fc.nat(999), ({ id, isError, text }, cuts, otherId) => {
        const chunks = pieces(text, cuts);
        const at = findResponseId(chunks);
        if (at === undefined) return;
        found++;
        expect(at).toMatchObject({ id, isError });
        expect(chunks[at.chunk]!.toString('latin1', at.start, at.end)).toBe(String(id));
        const readdressed = Buffer.concat(withResponseId(chunks, at, Buffer.from(`"${otherId}"`))).toString();
        expect(JSON.parse(readdressed)).toEqual({ ...(JSON.parse(text) as object), id: String(otherId) });
        expect(Buffer.concat(chunks).toString()).toBe(text);
      }),
      { numRuns: 3_000 },
    );
    expect(found).toBeGreaterThan(200);
  });

  it.each([
    '{"jsonrpc":"2.0","id":12,"result":{"id":7}}',
    '{"id":12,"jsonrpc":"2.0","result":{}}',
    '{"jsonrpc":"2.0","result":{"id":7},"id":12}',
    '{"result":{"id":7},"jsonrpc":"2.0","id":12}',
    '{"result":{"id":7},"id":12,"jsonrpc":"2.0"}',
    '{"result": {"id": 7}, "id": 12, "jsonrpc": "2.0"}\n',
    '{\n  "jsonrpc": "2.0",\n  "id": 12,\n  "error": {}\n}',
  ])('is found without reading the payload: %s', (text) => {
    expect(findResponseId([Buffer.from(text)])).toMatchObject({ id: 12, isError: text.includes('error') });
  });

  it('is the effective one of two, wherever the server put the other', () => {
    const other = fc.constantFrom('"id":7', '"id" : "7"', '"\\u0069d":7', '"id":null');
    const head = ['"jsonrpc":"2.0"', '"id":12'];
    const texts = other.chain((second) =>
      fc
        .tuple(fc.shuffledSubarray(head, { minLength: 2 }), objectText(['"result":{}', second, second]))
        .map(([first, rest]) => `{${first.join(',')},${rest.slice(1)}`),
    );
    fc.assert(
      fc.property(texts, rareCuts, (text, cuts) => {
        const chunks = pieces(text, cuts);
        const at = findResponseId(chunks);
        if (at === undefined) return;
        const readdressed = Buffer.concat(withResponseId(chunks, at, Buffer.from('34'))).toString();
        expect(JSON.parse(readdressed)).toEqual({ jsonrpc: '2.0', id: 34, result: {} });
      }),
    );
  });

  it.each([
    ['a request', '{"jsonrpc":"2.0","id":1,"method":"ping"}'],
    ['a notification', '{"jsonrpc":"2.0","method":"m","params":{"id":1}}'],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"result":{}}]'],
    ['a string id', '{"jsonrpc":"2.0","id":"1","result":{}}'],
    ['a fraction', '{"jsonrpc":"2.0","id":1.0,"result":{}}'],
    ['a fraction at the end', '{"jsonrpc":"2.0","result":{},"id":1.0}'],
    ['a negative id', '{"jsonrpc":"2.0","result":{},"id":-1}'],
    ['an exponent', '{"jsonrpc":"2.0","result":{},"id":1e2}'],
    ['an id beyond double precision', '{"jsonrpc":"2.0","id":9007199254740993,"result":{}}'],
    ['another version', '{"jsonrpc":"2.1","id":1,"result":{}}'],
    ['two ids before the result', '{"jsonrpc":"2.0","id":1,"id":2,"result":{}}'],
    ['an escaped id', '{"jsonrpc":"2.0","\\u0069d":1,"result":{}}'],
    ['an id only in the payload', '{"jsonrpc":"2.0","result":{"a":1,"id":1}}'],
    ['a text that ends like a response', '"{\\"result\\":1,\\"id\\":1}'],
    ['no end', '{"jsonrpc":"2.0","id":1,"result":[]'],
    ['nothing', '{'],
  ])('is left to a full parse with %s', (_what, text) => {
    expect(findResponseId([Buffer.from(text)])).toBeUndefined();
  });
});

describe('the result of a response', () => {
  const blanks = fc.constantFrom('', ' ', '\n', ' '.repeat(63), ' '.repeat(64), '\n'.repeat(200));
  const results = fc.oneof(
    jsonTexts.object,
    jsonTexts.value,
    blanks.map((blank) => `{${blank}}`),
    fc.tuple(blanks, jsonTexts.value).map(([blank, value]) => `{${blank}"a":${value}}`),
  );
  const texts = fc
    .tuple(results, fc.boolean(), blanks)
    .map(([result, isIdFirst, blank]) =>
      isIdFirst
        ? `{"jsonrpc":"2.0","id":12,${blank}"result":${result}${blank}}`
        : `{"jsonrpc":"2.0","result":${blank}${result},"id":12}`,
    );
  const members = Buffer.from('"new":{"n":1}');

  it('gets added members, however the response is split, and the id stays findable', () => {
    fc.assert(
      fc.property(texts, rareCuts, (text, cuts) => {
        const chunks = pieces(text, cuts);
        const at = findResponseId(chunks);
        if (at === undefined) return;
        const more = withResultMembers(chunks, at, members);
        const readdressed = Buffer.concat(
          withResponseId(more.chunks, more.at, Buffer.from('"x"')),
        ).toString();
        const { result } = JSON.parse(text) as { result: unknown };
        const isObject = typeof result === 'object' && result !== null && !Array.isArray(result);
        expect(JSON.parse(readdressed)).toEqual({
          jsonrpc: '2.0',
          id: 'x',
          result: isObject ? { new: { n: 1 }, ...result } : result,
        });
        expect(Buffer.concat(chunks).toString()).toBe(text);
      }),
      { numRuns: 3_000 },
    );
  });

  it('is complete if its first chunk ends in a long run of blanks', () => {
    const chunks = [Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{${' '.repeat(100)}`), Buffer.from('}}')];
    const at = findResponseId(chunks)!;
    const more = withResultMembers(chunks, at, members);
    expect(JSON.parse(Buffer.concat(more.chunks).toString())).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: { new: { n: 1 } },
    });
  });
});
