import type { Random } from '../../soak/random.ts';
import { canaryOf, someBytes, weighted } from './random.ts';

interface Mutated {
  bytes: Buffer;
  what: string;
}

type Mutation = (random: Random, text: string, index: number) => string;

const keys = ['jsonrpc', 'id', 'method', 'params', 'name', 'arguments', '_meta', 'uri', 'protocolVersion'];
const values = [
  '1e999',
  '-0',
  '1'.repeat(400),
  `1${'0'.repeat(300)}`,
  '"\\ud800"',
  '"\\udfff\\ud800"',
  '"\\u0000"',
  'null',
  'true',
  '[]',
  '{}',
  '""',
  '{"__proto__":{"x":1}}',
  '{"constructor":{"prototype":{}}}',
  '{"toString":null}',
  '01',
  '.5',
  'NaN',
  "'x'",
  '"\t"',
  '"\\x41"',
  '/* */1',
];

/** In latin1, so that a character is a byte. */
const mutations: Record<string, Mutation> = {
  'a key twice': (random, text) => text.replace('{', `{"${random.pick(keys)}":${random.pick(values)},`),
  'a key twice, at the end': (random, text) =>
    text.replace(/\}\s*$/, `,"${random.pick(keys)}":${random.pick(values)}}`),
  'an escaped key': (random, text) => {
    const key = random.pick(keys);
    const code = key.charCodeAt(0).toString(16).padStart(4, '0');
    return text.replace(`"${key}"`, `"\\u${code}${key.slice(1)}"`);
  },
  'a key in another case': (random, text) => {
    const key = random.pick(keys);
    return text.replace(`"${key}"`, `"${key.toUpperCase()}"`);
  },
  'another value': (random, text) => {
    const key = random.pick(keys);
    return text.replace(
      new RegExp(`"${key}"(\\s*):(\\s*)("[^"]*"|[\\d.-]+|\\{\\}|\\[\\])`),
      `"${key}":${random.pick(values)}`,
    );
  },
  'a missing member': (random, text) =>
    text.replace(new RegExp(`"${random.pick(keys)}"\\s*:\\s*("[^"]*"|\\d+),?`), ''),
  'deep nesting': (random, text) => {
    const depth = weighted(random, [
      [30, 50],
      [10, 1_000],
      [1, 20_000],
    ]);
    const [open, close] = random.pick([
      ['[', ']'],
      ['{"a":', '}'],
    ] as const);
    const closed = random.chance(0.7) ? close.repeat(depth) : '';
    return text.replace(/\}\s*$/, `,"x":${open.repeat(depth)}1${closed}}`);
  },
  'invalid UTF-8': (random, text) => {
    const bad = random.pick([
      '\xff',
      '\xc0\x80',
      '\xed\xa0\x80',
      '\xf4\x90\x80\x80',
      '\xe2\x82',
      '\x80',
      '\xf8\x88\x80\x80\x80',
    ]);
    return insert(random, text, bad);
  },
  'a BOM': (random, text) => random.pick(['\xef\xbb\xbf', '\xff\xfe', '\xfe\xff']) + text,
  'a NUL': (random, text) => insert(random, text, '\0'),
  'cut off': (random, text) => text.slice(0, random.below(text.length + 1)),
  'something behind it': (random, text) => text + random.pick(['x', ',', '}', ']', '{}', '\0', text]),
  'some bytes': (random, text) =>
    insert(random, text, someBytes(random, 1 + random.below(8)).toString('latin1')),
  'a byte changed': (random, text) => {
    const at = random.below(text.length);
    return text.slice(0, at) + String.fromCharCode(random.below(256)) + text.slice(at + 1);
  },
  'a piece twice': (random, text) => {
    const from = random.below(text.length);
    return insert(random, text, text.slice(from, from + 1 + random.below(40)));
  },
  'control characters': (random, text) =>
    insert(random, text, random.pick(['\x1b[2J', '\r\n', '\x7f', '\x08', '\xe2\x80\xa8'])),
  'a long text': (random, text) => {
    const length = random.below(200) === 0 ? 300_000 : 2_000;
    return text.replace(/\}\s*$/, `,"x":"${'y'.repeat(length)}"}`);
  },
  'many members': (random, text) => {
    const count = random.below(100) === 0 ? 20_000 : 100;
    const members = Array.from({ length: count }, (_, number) => `"k${number}":${number}`).join(',');
    return text.replace(/\}\s*$/, `,${members}}`);
  },
  'utf-16': (_random, text) => Buffer.from(text, 'utf16le').toString('latin1'),
  'a canary somewhere': (random, text, index) => insert(random, text, canaryOf(index)),
};
const names = Object.keys(mutations);

/** Applies one to three mutations to the bytes. */
export function mutate(random: Random, bytes: Buffer, index: number): Mutated {
  let text = bytes.toString('latin1');
  const done: string[] = [];
  for (
    let count = weighted(random, [
      [7, 1],
      [2, 2],
      [1, 3],
    ]);
    count > 0;
    count--
  ) {
    const name = random.pick(names);
    text = mutations[name]!(random, text, index);
    done.push(name);
  }
  return { bytes: Buffer.from(text, 'latin1'), what: done.join(', ') };
}

function insert(random: Random, text: string, inserted: string): string {
  const at = random.below(text.length + 1);
  return text.slice(0, at) + inserted + text.slice(at);
}
