import type { Random } from '../../soak/random.ts';
import { mutate } from './mutations.ts';
import { canaryOf, someBytes, weighted } from './random.ts';

/** `odd`: valid but unusual, so the response has to arrive. `hostile`: anything. */
export type Mood = 'odd' | 'hostile';

/** Part of all output of a hostile server: only its callers may see it. */
export const HOSTILE_MARK = 'hostile-mark';

/** The response of a server to the request with this id (as JSON). */
export function answerText(random: Random, index: number, id: string, mood: Mood): string {
  const text = mood === 'odd' ? canaryOf(index) : HOSTILE_MARK;
  const members = [
    '"jsonrpc":"2.0"',
    `"id":${id}`,
    `"result":{"content":[{"type":"text","text":"${text}"}]${random.pick(['', ',"id":7', ',"isError":false', ',"x":{"id":"y","error":{}}'])}}`,
  ];
  if (random.chance(0.4)) members.sort(() => random.fraction() - 0.5);
  return `{${members.join(random.pick([',', ' , ']))}}`;
}

/** Another message that a server may send before its response. */
function asideText(random: Random, mood: Mood): string {
  const mark = mood === 'odd' ? '' : HOSTILE_MARK;
  return random.pick([
    `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${mark}"}}`,
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody","progress":1,"message":"${mark}"}}`,
    `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:${mark}"}}`,
    '{"jsonrpc":"2.0","method":"notifications/unheard"}',
    `{"jsonrpc":"2.0","id":"q${random.below(1e6)}","method":"ping"}`,
    `{"jsonrpc":"2.0","id":"q${random.below(1e6)}","method":"roots/list"}`,
    `{"jsonrpc":"2.0","id":"q${random.below(1e6)}","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`,
    `{"jsonrpc":"2.0","id":"q${random.below(1e6)}","method":"elicitation/create","params":{"message":"${mark}","requestedSchema":{"type":"object","properties":{}}}}`,
    '{"jsonrpc":"2.0","id":"nobody","result":{}}',
    '{"jsonrpc":"2.0","id":99999999,"error":{"code":-1,"message":"x"}}',
  ]);
}

/** A message that is no response to this request. */
export function falseText(random: Random, id: string): string {
  return random.pick([
    `{"jsonrpc":"2.0","id":"${id.replaceAll('"', '')}","result":{"content":[],"m":"${HOSTILE_MARK}"}}`,
    `{"jsonrpc":"2.0","id":${id}.0,"result":{}}`,
    `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"${HOSTILE_MARK}"}}`,
    `{"jsonrpc":"2.0","id":${id},"result":{},"id":1}`,
    `{"jsonrpc":"2.0","id":${id},"result":{},"error":{"code":1,"message":"x"}}`,
    `{"jsonrpc":"2.0","id":${id}}`,
    `{"jsonrpc":"2.0","id":${id},"error":"${HOSTILE_MARK}"}`,
    `{"jsonrpc":"2.0","id":${id},"error":{"code":1.5,"message":7,"data":[[[]]]}}`,
    `{"jsonrpc":"2.0","id":${id},"result":null}`,
    `{"jsonrpc":"2.0","id":${id},"result":7}`,
    `{"jsonrpc":"1.0","id":${id},"result":{}}`,
    `{"id":${id},"result":{"${HOSTILE_MARK}":1}}`,
    `{"\\u0069d":${id},"jsonrpc":"2.0","result":{}}`,
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{}}`,
    `[{"jsonrpc":"2.0","id":${id},"result":{}}]`,
    `{"jsonrpc":"2.0","id":{},"result":{}}`,
    `{"jsonrpc":"2.0","id":${id},"result":{"content":"${'['.repeat(50)}"}}`,
    `{"jsonrpc":"2.0","id":${id},"result":${'['.repeat(500)}${']'.repeat(500)}}`,
    '',
    'null',
    '[]',
    HOSTILE_MARK,
  ]);
}

/** One event with this data, with fields in any order and any kind of line break. */
function eventText(random: Random, data: string, mood: Mood): string {
  const ends = random.pick([['\n'], ['\r\n'], ['\r'], ['\n', '\r\n']]);
  const end = () => random.pick(ends);
  const parts = splitData(random, data).map((part) => `data:${random.pick(['', ' '])}${part}`);
  const before: string[] = [];
  if (random.chance(0.3)) before.push('event: message');
  if (random.chance(0.2)) before.push(`id: ${random.pick(['', '7', 'a\0b', 'x'.repeat(200), 'ä'])}`);
  if (random.chance(0.2)) before.push(`: ${'comment '.repeat(random.below(5))}`, ':');
  if (random.chance(0.1)) before.push('unknown: field', 'lonely', 'Data: x', ' data: x', 'retry: 1x');
  if (random.chance(0.05)) before.push(`retry: ${random.pick(['10', '1000', ''])}`);
  if (mood === 'hostile' && random.chance(0.2)) {
    before.push(
      random.pick([
        'event: other',
        'retry: 99999999999999999999',
        'data: x',
        'id',
        'event',
        `event: ${'e'.repeat(3_000)}`,
      ]),
    );
  }
  const lines = random.chance(0.5) ? [...before, ...parts] : [...parts, ...before];
  return lines.map((line) => `${line}${end()}`).join('') + end();
}

/** JSON may be split between its tokens, because data lines are joined by line feeds. */
function splitData(random: Random, data: string): string[] {
  if (!random.chance(0.2)) return [data];
  return data.replace(/,"(jsonrpc|id|result)"/g, ',\n"$1"').split('\n');
}

/** An event stream with the response, or with anything if it is hostile. */
export function streamText(random: Random, index: number, id: string, mood: Mood): Buffer {
  let text = random.chance(0.2) ? '\ufeff' : '';
  if (random.chance(0.2))
    text += random.pick([':\n\n', '\n\n\n', 'retry: 5\n\n', 'id: 1\ndata:\n\n', 'data\n\n']);
  const asides = weighted(random, [
    [6, 0],
    [3, random.below(4)],
    [1, random.below(30)],
  ]);
  for (let count = 0; count < asides; count++) text += eventText(random, asideText(random, mood), mood);
  if (mood === 'odd') return Buffer.from(text + eventText(random, answerText(random, index, id, mood), mood));
  text += eventText(
    random,
    random.chance(0.5) ? answerText(random, index, id, mood) : falseText(random, id),
    mood,
  );
  if (random.chance(0.3)) text += eventText(random, answerText(random, index, id, mood), mood);
  const bytes = Buffer.from(text);
  return weighted(random, [
    [4, () => bytes],
    [2, () => bytes.subarray(0, random.below(bytes.length))],
    [2, () => mutate(random, bytes, index).bytes],
    [1, () => Buffer.concat([bytes, someBytes(random, random.below(50))])],
    [1, () => Buffer.alloc(0)],
  ])();
}

/** The output of a stdio server for a call. */
export function linesText(random: Random, index: number, id: string, mood: Mood): Buffer {
  const lines: string[] = [];
  for (
    let count = weighted(random, [
      [5, 0],
      [3, 1],
      [1, 20],
      [0.1, 500],
    ]);
    count > 0;
    count--
  ) {
    lines.push(random.chance(0.7) ? asideText(random, mood) : junkLine(random, mood));
  }
  if (mood === 'hostile' && random.chance(0.5)) lines.push(falseText(random, id));
  if (mood === 'odd' || random.chance(0.6)) lines.push(answerText(random, index, id, mood));
  const end = random.pick(['\n', '\r\n']);
  const bytes = Buffer.from(lines.map((line) => line + end).join(''));
  if (mood === 'odd' || random.chance(0.7)) return bytes;
  return Buffer.concat([mutate(random, bytes, index).bytes, Buffer.from('\n')]);
}

function junkLine(random: Random, mood: Mood): string {
  const mark = mood === 'odd' ? '' : HOSTILE_MARK;
  return random.pick([
    'listening on stdio',
    '',
    ' ',
    '{',
    '[]',
    'null',
    `\x1b[31m${mark}\x1b[0m`,
    '{"level":"info"}',
    `${'x'.repeat(random.below(2_000))}`,
    '\ufeff',
    'Content-Length: 10',
  ]);
}
