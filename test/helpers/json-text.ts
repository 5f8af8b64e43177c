import fc from 'fast-check';

/** JSON as somebody may write it: any white space, escapes, spellings of numbers, and keys that are there twice. */
interface JsonTexts {
  value: string;
  object: string;
  array: string;
}

const space = fc.constantFrom('', '', '', '', ' ', '\n', '\t', '\r\n', ' \n\t ');

const characters = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 1 })
  .filter((text) => text >= ' ' && text !== '"' && text !== '\\');
const escapes = fc.oneof(
  fc.constantFrom(
    '\\"',
    '\\\\',
    '\\/',
    '\\b',
    '\\f',
    '\\n',
    '\\r',
    '\\t',
    '\\u0000',
    '\\uD83D\\ude00',
    '\\ud800',
  ),
  fc.nat(0xffff).map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`),
);
export const stringTexts = fc
  .array(fc.oneof({ arbitrary: characters, weight: 4 }, escapes), { maxLength: 8 })
  .map((pieces) => `"${pieces.join('')}"`);

const digits = fc.oneof(
  fc.nat(999).map(String),
  fc.bigInt({ min: 0n, max: 10n ** 25n }).map(String),
  fc.constantFrom('0', '00', '10', '000000001', '9007199254740993', '18446744073709551615'),
);
export const numberTexts = fc
  .tuple(
    fc.constantFrom('', '-'),
    digits.map((text) => text.replace(/^0+(?=\d)/, '')),
    fc.option(digits, { nil: undefined }),
    fc.option(fc.tuple(fc.constantFrom('e', 'E', 'e+', 'E-'), fc.constantFrom('0', '1', '05', '20', '400')), {
      nil: undefined,
    }),
  )
  .map(
    ([sign, whole, fraction, exponent]) =>
      `${sign}${whole}${fraction === undefined ? '' : `.${fraction}`}${exponent?.join('') ?? ''}`,
  );

/** A key of the envelope or one like it, sometimes spelled with an escape. */
const telling = fc.constantFrom(
  ...['id', 'jsonrpc', 'method', 'params', 'result', 'error', 'name', 'uri', '_meta', 'progressToken'],
  ...['arguments', 'Name', 'ID', '__proto__', 'constructor', 'toString', '0', '1', ''],
);
const keyTexts = fc.oneof(
  telling.map((key) => JSON.stringify(key)),
  telling.map((key) => `"${key.replace(/[a-z]/, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)}"`),
  stringTexts,
);

function within(open: string, items: fc.Arbitrary<string>, close: string): fc.Arbitrary<string> {
  return fc
    .array(
      fc.tuple(space, items, space).map((parts) => parts.join('')),
      { maxLength: 5 },
    )
    .chain((list) => space.map((blank) => open + (list.length === 0 ? blank : list.join(',')) + close));
}

export const jsonTexts = fc.letrec<JsonTexts>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom('null', 'true', 'false', '{}', '[]', '""'),
    numberTexts,
    stringTexts,
    tie('array'),
    tie('object'),
  ),
  array: within('[', tie('value'), ']'),
  object: within(
    '{',
    fc
      .tuple(keyTexts, space, space, tie('value'))
      .map(([key, before, after, value]) => `${key}${before}:${after}${value}`),
    '}',
  ),
}));

/** The members of an object in any order and with any white space, as JSON text. */
export function objectText(members: readonly string[]): fc.Arbitrary<string> {
  return fc
    .tuple(
      fc.shuffledSubarray([...members], { minLength: members.length }),
      fc.array(space, { minLength: 2 * members.length, maxLength: 2 * members.length }),
    )
    .map(([order, blanks]) => {
      const spaced = order.map((member, index) => blanks[2 * index] + member + blanks[2 * index + 1]);
      return `{${spaced.join(',')}}`;
    });
}
