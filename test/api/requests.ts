import fc from 'fast-check';

/** An arbitrary request to the API, often almost valid. */
export interface AnyRequest {
  method: string;
  /** Below /api/v1, as sent. */
  path: string;
  headers: Record<string, string>;
  body: string | Buffer | undefined;
}

const stdio = { name: 'made', transport: 'stdio', config: { command: 'x', args: [`\${TOKEN}`] } };
// Nothing listens there.
const address = 'http://127.0.0.1:1/mcp';
const remote = { name: 'remote', transport: 'http', config: { url: address, headers: { a: `\${TOKEN}` } } };
const manifest = (version: string, ...servers: object[]) => ({ name: 'kit', version, mcp: { servers } });

const bodies: Record<string, object[]> = {
  'POST /projects': [{ name: 'web' }, { name: 'web-2', description: 'x', retention_days: 3 }],
  'PATCH /projects/:project': [
    { description: 'y' },
    { record_payloads: true, retention_days: null, names: 'as-is' },
  ],
  'POST /projects/:project/servers': [stdio, remote],
  'PATCH /projects/:project/servers/:name': [
    { enabled: false },
    { enabled: true },
    { replicas: 2, labels: { a: 'b' }, timeout_ms: 5_000 },
    { name: 'remote', group: 'made' },
  ],
  'PATCH /projects/:project/tools/:tool': [{ enabled: false }, { enabled: true }],
  'PUT /projects/:project/secrets/:secret': [{ value: 's3cret' }],
  'POST /projects/:project/products': [
    manifest('1', { name: 'kit-one', transport: 'stdio', command: 'x' }),
    manifest('2', { name: 'kit-two', transport: 'sse', url: address }),
  ],
  'POST /projects/:project/import': [
    { mcpServers: { imported: { command: 'x' }, other: { url: address } } },
    { servers: { imported: { type: 'http', url: address } } },
    { name: 'io.x/registered', description: 'x', version: '1', remotes: [{ type: 'sse', url: address }] },
  ],
  // The project lacks the key for this.
  'POST /projects/:project/chat': [
    { input: 'x', tools: ['*'], max_steps: 2 },
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }], stream: true },
  ],
  'POST /mcp/servers': [
    {
      name: 'hosted',
      command: 'x',
      provider: 'process',
      environment: { A: `\${TOKEN}` },
      volumes: ['/data'],
    },
    { name: 'imaged', image: 'a/b', resource_limits: { cpu: 1, memory: '64M' }, port: 80 },
  ],
  'POST /keys': [
    { name: 'ci', project: 'default', role: 'caller' },
    { name: 'ops', role: 'owner', expires_at: '2999-01-01T00:00:00Z' },
  ],
  'PATCH /keys/:key': [{ name: 'ops' }, { expires_at: null }],
  'POST /keys/:key/rotate': [{}, { overlap_ms: 60_000 }],
  'POST /groups': [{ name: 'builders', description: 'x' }],
  'PUT /grants': [
    { principal: 'ci', role: 'viewer' },
    { group: 'builders', project: 'web', role: 'operator' },
  ],
  'POST /rules': [
    { effect: 'deny', subject: { principal: 'ci' }, kind: 'tool', server: 'box', name: '*_x*' },
    { effect: 'allow', project: 'web', subject: { role: 'viewer' }, read_only: true, destructive: null },
    { effect: 'deny', subject: { group: 'builders' }, name: 'file:///secret/*' },
  ],
  'POST /limits': [
    { principal: 'ci', per_minute: 60 },
    { project: 'web', server: 'b*', tool: 'e*', concurrent: 2, shared: true },
  ],
  'PATCH /mcp/servers/:id': [
    { enabled: false },
    { enabled: true, environment: { A: null, B: 'x' } },
    { resource_limits: { memory: null, pids: 9 }, volumes: [], restart_policy: 'never' },
  ],
};
const others = [
  ...['/status', '/projects', '/projects/:project', '/projects/:project/servers', '/openapi.json'],
  ...[
    '/projects/:project/servers/:name',
    '/projects/:project/servers/:name/logs',
    '/projects/:project/runs',
    '/projects/:project/runs/:run',
    '/projects/:project/tools',
  ],
  ...['/projects/:project/secrets', '/projects/:project/products', '/projects/:project/calls'],
  ...['/mcp/servers', '/mcp/servers/:id', '/mcp/servers/:id/logs'],
  ...['/whoami', '/keys', '/keys/:key', '/groups', '/roles', '/grants', '/rules', '/limits', '/can'],
  ...['/can?principal=ci&name=box__echo', '/audit', '/audit?format=jsonl', '/audit/verify'],
].map((path) => `GET ${path}`);
const removals = [
  ...['/projects/:project', '/projects/:project/servers/:name', '/projects/:project/secrets/:secret'],
  ...['/projects/:project/products/:product', '/mcp/servers/:id'],
  ...['/keys/:key', '/groups/:group', '/groups/:group/members/:key', '/grants/:grant', '/rules/:rule'],
  '/limits/:limit',
].map((path) => `DELETE ${path}`);
const tries = [
  ...['/projects/:project/servers/:name/test', '/secrets/rotate'],
  ...['/mcp/servers/:id/stop', '/mcp/servers/:id/start'],
].map((path) => `POST ${path}`);

const names: Record<string, string[]> = {
  project: ['default', 'web', 'web-2'],
  name: ['box', 'made', 'remote', 'kit-one', 'imported'],
  tool: ['box__echo', 'echo'],
  secret: ['TOKEN'],
  product: ['kit'],
  run: ['7f5c3f57-0c5e-4b0e-9d6a-0d2f3a1b4c5d'],
  id: ['hosted', 'imaged'],
  key: ['ci', 'default/ci', 'ops'].map(encodeURIComponent),
  group: ['builders'],
  grant: ['7f5c3f57-0c5e-4b0e-9d6a-0d2f3a1b4c5d'],
  rule: ['r00000000'],
  limit: ['l00000000'],
};

const oddTexts = [
  ...['', ' ', '.', '..', '/', '\\', '%', '\0', '\u{feff}', '\u{202e}', '\u{1f600}'.repeat(40)],
  ...['__proto__', 'constructor', 'toString', "'; DROP TABLE kb.projects; --", '${TOKEN', `\${}`, '\r\nx: y'],
  ...['x'.repeat(5_000), '00000000-0000-0000-0000-000000000000', 'null', 'ﬁ', 'e\u0301', '\u{10ffff}'],
];
/** Some of these cannot be decoded. */
const oddSteps = [
  '%',
  '%zz',
  '%00',
  '%2F',
  '%2e%2e',
  '%c0%af',
  '%ED%A0%80',
  '%F0%9F%98%80',
  '..',
  ';a=b',
  '',
];
const oddQueries = [
  ...['?', '?limit=0', '?limit=1e3', '?limit=５', '?limit=50&limit=50', '?since=never', '?status=OK', '?x'],
  ...['?since=2030-01-31T12:00:00%2B25:00', '?since=0000-01-01T00:00:00Z', '?until=9999-12-31T23:59:59Z'],
  ...['?cursor=', '?cursor=e30', '?cursor=%00', `?cursor=${'A'.repeat(1_000)}`, '?replace=yes', '?%zz=%zz'],
  ...['?project=default', '?project=nowhere', '?principal=ci', '?action=see&name=x', '?outcome=denied'],
  ...['?replace=true', '?server=%00', '?tool=%F0%9F', '?__proto__=x', '?limit=500&status=error'],
];
const oddNumbers = [
  '1e400',
  '-0',
  '1e-400',
  '9007199254740993',
  '123456789012345678901234567890',
  '0.1',
  '1E2',
];
const oddTypes = [
  ...['text/plain', 'application/json; charset=latin1', 'application/jsonp', 'multipart/form-data', 'x', ''],
  ...['application/json; charset="UTF-8"', 'APPLICATION/JSON', 'application/json;;', 'application/*'],
];
const oddVersions = ['*', '"1"', '"2"', '1', 'W/"1"', '"0"', '"1", "2"', '"999999999999999"', '""', '"1e3"'];

/** Mostly the first, so that the code behind it is reached too. */
function mostly<Value>(usual: fc.Arbitrary<Value>, odd: fc.Arbitrary<Value>, weight = 12) {
  return fc.oneof({ weight, arbitrary: usual }, odd);
}

const step = (kind: string) => mostly(fc.constantFrom(...names[kind]!), odd.map(encoded));
const odd = fc.oneof(fc.constantFrom(...oddTexts), fc.string({ unit: 'binary', maxLength: 20 }));

function pathOf(pattern: string): fc.Arbitrary<string> {
  const steps = pattern
    .split('/')
    .map((part) => (part.startsWith(':') ? step(part.slice(1)) : fc.constant(part)));
  const usual = fc.tuple(...steps).map((parts) => parts.join('/'));
  const broken = fc
    .tuple(usual, fc.constantFrom(...oddSteps), fc.nat())
    .map(([path, part, place]) => insertStep(path, part, place));
  const query = mostly(fc.constant(''), fc.constantFrom(...oddQueries), 3);
  return fc.tuple(mostly(usual, broken), query).map((parts) => parts.join(''));
}

function insertStep(path: string, part: string, place: number): string {
  const steps = path.split('/');
  return steps.with(1 + (place % (steps.length - 1)), part).join('/');
}

/** Ways to corrupt the text of a JSON object; some leave it valid. */
const spoilers: ((text: string, place: number, some: string) => string | Buffer)[] = [
  (text, place) => text.slice(0, place % text.length),
  (text) => text.replace('{', '{"name":"twice","name":"thrice",'),
  (text) => text.replace('{', '{"__proto__":{"enabled":true},'),
  (text, _place, some) => text.replace(/"[^"]*"(?=[,}\]])/, () => JSON.stringify(some)),
  (text, _place, some) => text.replace(/"[^"]*"(?=:)/, () => JSON.stringify(some)),
  (text, place) => text.replace(/("[^"]*"|\d+|true|false|null)(?=[,}\]])/, () => pick(oddNumbers, place)),
  (text) => text.replace(/"[^"]*"(?=[,}\]])/, '"\\ud800"'),
  (text) => text.replace(/"[^"]*"(?=[,}\]])/, '"\\u0000"'),
  (text) => text.replace(/"[^"]*"(?=[,}\]])/, '{}'),
  (text) => text.replace(/"[^"]*"(?=[,}\]])/, 'null'),
  (text) => text.replace(/"[^"]*"(?=[,}\]])/, () => `${'['.repeat(5_000)}${']'.repeat(5_000)}`),
  (text) => text.replace(/}$/, ',}'),
  (text) => `// a comment\n${text}`,
  (text) => `\u{feff}${text}`,
  (text) => `[${text}]`,
  (text) => text + text,
  (text) => Buffer.concat([Buffer.from(text.slice(0, 12)), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
  (text) => Buffer.from(text, 'utf16le'),
  () => '"'.repeat(10_000),
  () => '[]',
  () => '0',
  () => '',
];

function bodyOf(some: object[] | undefined): fc.Arbitrary<string | Buffer | undefined> {
  if (some === undefined) return fc.constant(undefined);
  const text = fc.constantFrom(...some).map((body) => JSON.stringify(body));
  const spoiled = fc
    .tuple(text, fc.constantFrom(...spoilers), fc.nat(), odd)
    .map(([whole, spoil, place, word]) => spoil(whole, place, word));
  return mostly<string | Buffer>(text, spoiled, 1);
}

function headersOf(hasBody: boolean): fc.Arbitrary<Record<string, string>> {
  const type = mostly(fc.constant('application/json'), fc.constantFrom(...oddTypes));
  const version = mostly(fc.constant(undefined), fc.constantFrom<string | undefined>(...oddVersions), 3);
  return fc.tuple(type, version).map(([contentType, ifMatch]) => ({
    ...(hasBody && contentType !== '' ? { 'content-type': contentType } : {}),
    ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
  }));
}

export const anyRequest: fc.Arbitrary<AnyRequest> = fc
  .constantFrom(...Object.keys(bodies), ...Object.keys(bodies), ...others, ...removals, ...tries)
  .chain((operation) => {
    const [usual = '', pattern = ''] = operation.split(' ');
    const hasBody = operation in bodies;
    const method = mostly(fc.constant(usual), fc.constantFrom('PUT', 'OPTIONS', 'HEAD', 'QUERY'), 30);
    return fc.record({
      method,
      path: pathOf(pattern),
      headers: headersOf(hasBody || usual === 'POST'),
      body: bodyOf(bodies[operation]),
    });
  });

function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function pick<Item>(items: readonly Item[], place: number): Item {
  return items[place % items.length]!;
}
