import fc from 'fast-check';

/** JSON with any white space, escapes, number spellings and duplicate keys. */
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

/** Mostly plain, sometimes with an escape. */
function spelled(key: string): fc.Arbitrary<string> {
  const plain = JSON.stringify(key);
  const escaped = plain.replace(/[a-z]/, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);
  return fc.oneof({ arbitrary: fc.constant(plain), weight: 9 }, fc.constant(escaped));
}

/** Keys of the envelope, and similar ones. */
const tellingKeys = fc.constantFrom(
  ...['id', 'jsonrpc', 'method', 'params', 'result', 'error', 'name', 'uri', 'ref', '_meta', 'progressToken'],
  ...['arguments', 'Name', 'ID', 'para\u017fms', '__proto__', 'constructor', 'toString', '0', '1', ''],
);
const keyTexts = fc.oneof(tellingKeys.chain(spelled), stringTexts);

function within(open: string, items: fc.Arbitrary<string>, close: string): fc.Arbitrary<string> {
  return fc
    .array(
      fc.tuple(space, items, space).map((parts) => parts.join('')),
      { maxLength: 5 },
    )
    .chain((list) => space.map((blank) => open + (list.length === 0 ? blank : list.join(',')) + close));
}

export const jsonTexts = fc.letrec((tie: fc.LetrecTypedTie<JsonTexts>) => ({
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

/** In any order and with any white space. */
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

function member(key: string, values: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(spelled(key), space, values).map(([text, blank, value]) => `${text}:${blank}${value}`);
}

/** Sometimes adds other members, which may be duplicates. */
function objectWith(...members: fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  const other = fc.tuple(keyTexts, jsonTexts.value).map(([key, value]) => `${key}:${value}`);
  const others = fc.oneof(
    { arbitrary: fc.constant<string[]>([]), weight: 3 },
    fc.array(other, { maxLength: 2 }),
  );
  return fc.tuple(fc.tuple(...members), others).chain(([wanted, more]) => objectText([...wanted, ...more]));
}

/** A tools/call request as a careless or malicious client may write it. */
export function callTexts(ids: fc.Arbitrary<string>, names: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const progressToken = member('progressToken', fc.oneof(numberTexts, stringTexts));
  const meta = member('_meta', fc.oneof(objectWith(progressToken), objectWith(), jsonTexts.value));
  const callArguments = member('arguments', jsonTexts.object);
  const params = fc.oneof(
    objectWith(member('name', names), callArguments),
    objectWith(member('name', names), callArguments, meta),
    objectWith(member('name', names), member('name', fc.oneof(names, jsonTexts.value))),
  );
  return objectWith(
    member('jsonrpc', fc.constant('"2.0"')),
    member('id', ids),
    member('method', fc.constantFrom('"tools/call"', '"tools\\/call"')),
    member('params', params),
  );
}
