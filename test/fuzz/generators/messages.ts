import type { Random } from '../../soak/random.ts';
import { mutate } from './mutations.ts';
import { canaryOf, weighted } from './random.ts';

export interface Body {
  bytes: Buffer;
  headers: [string, string][];
  /** The ids, as JSON, of all requests that require a response; undefined if ambiguous. */
  ids: string[] | undefined;
  /** Whether the response may be an endless stream. */
  isEndless: boolean;
  what: string;
}

interface Parts {
  method: string;
  params: string | undefined;
}

/** Generates the method and params of a valid message, as JSON. */
type Ask = (random: Random, index: number) => Parts;

const asks: readonly (readonly [number, Ask])[] = [
  [30, call],
  [6, plain('tools/list', '{}', '{"cursor":"x"}', '{"cursor":""}', '{"cursor":7}')],
  [3, plain('resources/list', '{}', '{"cursor":"AAAA"}')],
  [3, plain('prompts/list', '{}')],
  [2, plain('resources/templates/list', '{}')],
  [5, plain('ping', '{}', undefined)],
  [4, (random, index) => ({ method: 'resources/read', params: uriOf(random, index) })],
  [3, (random, index) => ({ method: 'resources/subscribe', params: uriOf(random, index) })],
  [2, (random, index) => ({ method: 'resources/unsubscribe', params: uriOf(random, index) })],
  [3, (_, index) => ({ method: 'prompts/get', params: `{"name":"${canaryOf(index)}"}` })],
  [2, plain('logging/setLevel', '{"level":"debug"}', '{"level":"error"}', '{"level":"loud"}', '{}')],
  [
    3,
    plain(
      'completion/complete',
      '{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}',
      '{"ref":{"type":"ref/resource","uri":"resource://echo/x"}}',
      '{"ref":7}',
    ),
  ],
  [2, plain('tasks/get', '{"taskId":"t"}', '{}')],
  [1, plain('tasks/result', '{"taskId":"t"}')],
  [1, plain('tasks/cancel', '{"taskId":"t"}')],
  [1, plain('tasks/list', '{}')],
  [2, plain('server/discover', '{}')],
  [2, plain('__proto__', '{}')],
  [2, (random, index) => ({ method: `${canaryOf(index)}${'m'.repeat(random.below(200))}`, params: '{}' })],
];

const notifications = [
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
  'notifications/unheard',
  'constructor',
];

function plain(method: string, ...params: (string | undefined)[]): Ask {
  return (random) => ({ method, params: random.pick(params) });
}

function call(random: Random, index: number): Parts {
  const text =
    canaryOf(index) +
    random.pick(['', 'a', 'ä€😀', '\\u0000', '\\ud800', '"'.repeat(2).replace(/"/g, '\\"')]);
  const given = random.pick([
    `{"text":"${text}"}`,
    `{"text":"${text}","n":${random.pick(['1e999', '-0', '123456789012345678901234567890', '0.1e-7'])}}`,
    `{"text":"${text}","deep":${nested(random)}}`,
    `{ "text" : "${text}" , "text2":[]}`,
  ]);
  const name = weighted(random, [
    [20, 'echo__echo'],
    [2, 'echo__whoami'],
    [2, 'echo__nothing'],
    [1, 'nobody__echo'],
    [1, ''],
    [1, 'toString'],
  ]);
  const meta = random.pick(['', '', '', `,"_meta":{"progressToken":${idText(random, index)}}`]);
  return { method: 'tools/call', params: `{"name":"${name}","arguments":${given}${meta}}` };
}

function nested(random: Random): string {
  const depth = weighted(random, [
    [20, 3],
    [5, 60],
    [1, 400],
  ]);
  return '['.repeat(depth) + ']'.repeat(depth);
}

function uriOf(random: Random, index: number): string {
  const uri = random.pick([
    `resource://echo/${canaryOf(index)}`,
    `resource://nobody/${canaryOf(index)}`,
    `file:///${canaryOf(index)}`,
    'resource://',
    'resource://echo',
    'http://[::1',
    '',
    '\\u0000',
    '../../etc/passwd',
  ]);
  return `{"uri":"${uri}"}`;
}

function idText(random: Random, index: number): string {
  return weighted(random, [
    [10, String(index)],
    [3, `"${canaryOf(index)}"`],
    [1, '0'],
    [1, '-1'],
    [1, '9007199254740993'],
    [1, '""'],
    [1, '"\\u0041\\n\\"\\\\"'],
    [1, '"ä€😀"'],
    [1, `"${'i'.repeat(random.below(200))}"`],
  ]);
}

/** A valid or nearly valid message of either era. */
export function generateBody(random: Random, index: number): Body {
  return weighted(random, [
    [45, sound],
    [15, modern],
    [5, initialize],
    [6, notification],
    [6, batch],
    [4, answer],
    [19, hostile],
  ])(random, index);
}

function sound(random: Random, index: number): Body {
  const id = idText(random, index);
  const { method, params } = weighted(random, asks)(random, index);
  return body(request(random, id, method, params), method, [id]);
}

function request(random: Random, id: string, method: string, params: string | undefined): string {
  const members = ['"jsonrpc":"2.0"', `"id":${id}`, `"method":"${method}"`];
  if (params !== undefined) members.push(`"params":${params}`);
  if (random.chance(0.3)) members.sort(() => random.fraction() - 0.5);
  const space = random.pick(['', '', '', ' ', '\n\t ']);
  return `${space}{${members.join(`${space},${space}`)}}${space}`;
}

const PREFIX = 'io.modelcontextprotocol/';

function modern(random: Random, index: number): Body {
  const id = idText(random, index);
  const isListening = random.chance(0.05);
  const { method, params = '{}' } = isListening
    ? { method: 'subscriptions/listen', params: '{"notifications":{"toolsListChanged":true}}' }
    : weighted(random, asks)(random, index);
  const version = random.pick(['2026-07-28', '2026-07-28', '2026-07-28', '2099-01-01', '2025-11-25']);
  const meta = `"_meta":{"${PREFIX}protocolVersion":"${version}","${PREFIX}clientInfo":{"name":"fuzz","version":"1"},"${PREFIX}clientCapabilities":{}}`;
  const open = params.slice(0, -1);
  const described = `${open}${open === '{' ? '' : ','}${meta}}`;
  const named = /"(?:name|uri)":"([^"\\]*)"/.exec(params)?.[1];
  const headers: [string, string][] = [
    ['MCP-Protocol-Version', version],
    ['Mcp-Method', method],
    ...(named === undefined
      ? []
      : ([['Mcp-Name', random.chance(0.9) ? named : 'other']] as [string, string][])),
  ];
  if (random.chance(0.1)) headers.splice(random.below(headers.length), 1);
  if (random.chance(0.1)) headers.push(['X-Switchboard-Session', canaryOf(index)]);
  const made = body(request(random, id, method, described), `modern ${method}`, [id]);
  return { ...made, headers, isEndless: isListening };
}

function initialize(random: Random, index: number): Body {
  const id = idText(random, index);
  const version = random.pick(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '1999-01-01', '']);
  const capabilities = random.pick([
    '{}',
    '{"sampling":{},"elicitation":{},"roots":{"listChanged":true}}',
    '{"x":[[]]}',
  ]);
  const info = random.pick([
    `{"name":"${canaryOf(index)}","version":"1"}`,
    `{"name":"${'n'.repeat(random.below(500))}","version":"\\u001b[2J"}`,
    '{}',
    'null',
    '{"name":7}',
  ]);
  const params = `{"protocolVersion":"${version}","capabilities":${capabilities},"clientInfo":${info}}`;
  return body(request(random, id, 'initialize', params), 'initialize', [id]);
}

function notification(random: Random, index: number): Body {
  const params = random.pick([
    '{}',
    `{"requestId":${idText(random, index)}}`,
    `{"progressToken":${idText(random, index)},"progress":1}`,
    '[]',
    'null',
  ]);
  const text = `{"jsonrpc":"2.0","method":"${random.pick(notifications)}","params":${params}}`;
  return body(text, 'notification', undefined);
}

/** A response to a request that was never sent. */
function answer(random: Random, index: number): Body {
  const id = idText(random, index);
  const rest = random.pick([
    '"result":{}',
    `"result":{"action":"accept","content":"${canaryOf(index)}"}`,
    '"error":{"code":-1,"message":"no"}',
    '"error":{}',
    '"result":{},"error":{"code":1,"message":""}',
  ]);
  return body(`{"jsonrpc":"2.0","id":${id},${rest}}`, 'answer', undefined);
}

function batch(random: Random, index: number): Body {
  const count = weighted(random, [
    [1, 0],
    [6, 1 + random.below(4)],
    [2, 1 + random.below(30)],
  ]);
  const items = Array.from({ length: count }, () =>
    weighted(random, [
      [8, sound],
      [3, notification],
      [1, initialize],
      [1, answer],
      [1, hostile],
    ])(random, index).bytes.toString('latin1'),
  );
  const text = Buffer.from(`[${items.join(',')}]`, 'latin1');
  return { ...body('', `batch of ${count}`, undefined), bytes: text };
}

function hostile(random: Random, index: number): Body {
  const base = weighted(random, [
    [5, sound],
    [2, modern],
    [2, initialize],
    [1, notification],
    [1, batchless],
  ])(random, index);
  const { bytes, what } = mutate(random, base.bytes, index);
  return { ...base, bytes, ids: undefined, isEndless: base.isEndless, what: `${base.what}, ${what}` };
}

function batchless(random: Random): Body {
  const text = random.pick([
    '',
    ' ',
    'null',
    '7',
    '"x"',
    '[]',
    '[[]]',
    '{}',
    '[{}]',
    '{"jsonrpc":"2.0"}',
    'true',
    '[1,2]',
  ]);
  return body(text, `the text ${text}`, undefined);
}

function body(text: string, what: string, ids: string[] | undefined): Body {
  return { bytes: Buffer.from(text), headers: [], ids, isEndless: false, what };
}
