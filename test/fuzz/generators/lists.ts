import type { Random } from '../../soak/random.ts';
import { mutate } from './mutations.ts';
import { weighted } from './random.ts';
import { HOSTILE_MARK } from './sse.ts';

const kinds = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
  'prompts/list': 'prompts',
} as const;

export type ListMethod = keyof typeof kinds;

export function isListMethod(method: string): method is ListMethod {
  return method in kinds;
}

/** The maximum number of pages, because the cost to the server itself is not under test. */
const MAX_PAGES = 40;

/** The result of a list request, as possibly malformed JSON. `page` counts from 0. */
export function listPage(random: Random, index: number, method: ListMethod, page: number): string {
  const count = weighted(random, [
    [3, 0],
    [6, random.below(6)],
    [1, random.below(60)],
    [0.02, 3_000],
  ]);
  const items = Array.from({ length: count }, () => listItem(random, method));
  const next = page >= MAX_PAGES ? '' : nextCursor(random, page);
  const text = `{"${kinds[method]}":[${items.join(',')}]${next}}`;
  return weighted<() => string>(random, [
    [8, () => text],
    [
      1,
      () =>
        mutate(random, Buffer.from(text), index)
          .bytes.toString('latin1')
          .replaceAll(/\n|canary-\d+-[\da-z]+\./g, ' '),
    ],
    [
      1,
      () =>
        random.pick([
          '{}',
          'null',
          '[]',
          '7',
          `{"${kinds[method]}":{}}`,
          `{"${kinds[method]}":null}`,
          `{"${kinds[method]}":"x"}`,
          `{"tools":[[]],"nextCursor":"a"}`,
        ]),
    ],
  ])();
}

function nextCursor(random: Random, page: number): string {
  return weighted(random, [
    [7, ''],
    [2, `,"nextCursor":"${page + 1}"`],
    [1, ',"nextCursor":"same"'],
    [0.3, ',"nextCursor":""'],
    [0.3, ',"nextCursor":null'],
    [0.3, ',"nextCursor":7'],
    [0.3, `,"nextCursor":"${'c'.repeat(5_000)}"`],
    [0.3, ',"nextCursor":"a","nextCursor":"b"'],
  ]);
}

const odd = ['null', '7', '""', '[]', '{}', 'true', '"x"', '"\\ud800"', '1e999', `"${HOSTILE_MARK}"`];

function listItem(random: Random, method: ListMethod): string {
  if (random.chance(0.05)) return random.pick(odd);
  const name = weighted(random, [
    [8, `"t${random.below(10)}"`],
    [1, `"${'n'.repeat(random.below(300))}"`],
    [
      1,
      random.pick([
        '"a b"',
        '"ä"',
        '"__proto__"',
        '"a__b"',
        '"\\u0000"',
        '"\\u001b[2J"',
        '"../x"',
        '"constructor"',
        '"a/b"',
      ]),
    ],
    [1, random.pick(odd)],
  ]);
  const uri = random.pick([
    '"x:1"',
    '"file:///a"',
    '"resource://a/b"',
    '""',
    '"::"',
    '"x:{y}"',
    random.pick(odd),
  ]);
  const members = [`"name":${name}`];
  if (method === 'tools/list') members.push(`"inputSchema":${schema(random)}`);
  if (method === 'resources/list') members.push(`"uri":${uri}`);
  if (method === 'resources/templates/list') members.push(`"uriTemplate":${uri}`);
  if (random.chance(0.3))
    members.push(`"description":${random.pick([`"${'d'.repeat(random.below(2_000))}"`, random.pick(odd)])}`);
  if (random.chance(0.2))
    members.push(
      `"annotations":${random.pick(['{"readOnlyHint":true}', '{"readOnlyHint":"yes"}', random.pick(odd)])}`,
    );
  if (random.chance(0.2))
    members.push(`"_meta":${random.pick(['{}', '{"dev.switchboard/server":"liar"}', random.pick(odd)])}`);
  if (random.chance(0.05)) members.push(members[random.below(members.length)]!);
  if (random.chance(0.05)) members.splice(random.below(members.length), 1);
  return `{${members.join(',')}}`;
}

function schema(random: Random): string {
  const depth = random.below(30) === 0 ? 300 : 3;
  return random.pick([
    '{"type":"object"}',
    '{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}',
    `{"type":"object","properties":${'{"a":'.repeat(depth)}{}${'}'.repeat(depth)}}`,
    '{"$ref":"#"}',
    random.pick(odd),
  ]);
}
