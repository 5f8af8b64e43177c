import fc from 'fast-check';
import { expect, it } from 'vitest';
import { startForTests } from '../../test/helpers/api-client.ts';
import type { Route } from './http/route.ts';
import { routes } from './routes.ts';

const { serve } = await startForTests();

const anyText = fc.oneof(
  fc.constantFrom('..', '__proto__', '\0', 'a/b', '%', ''),
  fc.string({ unit: 'binary', maxLength: 20 }),
);
const anything = fc.oneof(fc.jsonValue({ maxDepth: 3 }), anyText, fc.integer(), fc.constant(null));

/** Usually a valid value, so that later checks are reached too. */
function mostly<Value>(...fitting: Value[]): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...fitting) }, anything);
}

const server = {
  name: mostly('github', 'files'),
  transport: mostly('stdio'),
  config: mostly(
    { command: 'x' },
    { command: 'x', args: ['y'], env: { A: 'b' } },
    { url: 'http://127.0.0.1:1' },
  ),
  enabled: mostly(true),
  replicas: mostly(2),
  labels: mostly({ a: 'b' }),
  timeout_ms: mostly(5),
  max_timeout_ms: mostly(7, 3),
  group: mostly('code'),
};
const hosted = {
  name: mostly('github', 'files'),
  image: mostly('mcp/time', null),
  command: mostly('node', null),
  environment: mostly({ A: 'b' }),
  port: mostly(8080, null),
  volumes: mostly(['/data'], []),
  resource_limits: mostly({ cpu: '1', memory: 1e9 }, { pids: null }),
};
const { name: _fixed, ...hostedChanges } = hosted;
const product = { name: 'files', transport: 'stdio', command: 'x' };
const shapes: Record<string, Record<string, fc.Arbitrary<unknown>>> = {
  createProject: { name: mostly('web', 'default'), description: mostly('x'), retention_days: mostly(1) },
  changeProject: { description: mostly('x', null), record_payloads: mostly(true) },
  createServer: server,
  changeServer: server,
  switchTool: { enabled: mostly(true) },
  putSecret: { value: mostly('s3cret') },
  createHosted: hosted,
  changeHosted: hostedChanges,
  chat: { input: mostly('hello'), tools: mostly(['*']), max_steps: mostly(3) },
  callHosted: { method: mostly('ping'), params: mostly({}), timeout_ms: mostly(5) },
  createKey: { name: mostly('github', 'kit'), project: mostly('default', null), role: mostly('caller') },
  changeKey: { name: mostly('github', 'kit'), expires_at: mostly(null, '2999-01-01T00:00:00Z') },
  rotateKey: { overlap_ms: mostly(0, 60_000) },
  createGroup: { name: mostly('github', 'kit') },
  grantRole: { principal: mostly('github'), project: mostly('default', null), role: mostly('viewer') },
  createRule: {
    effect: mostly('deny', 'allow'),
    subject: mostly<unknown>('everyone', { role: 'viewer' }, { principal: 'github' }, { group: 'kit' }),
    kind: mostly('tool', null),
    server: mostly('github', '*'),
    name: mostly('*', 'delete_*'),
  },
  createLimit: { principal: mostly('github', null), per_minute: mostly(1, null), concurrent: mostly(1) },
  installProduct: { name: mostly('kit'), version: mostly('1'), mcp: mostly({ servers: [product] }) },
};

function bodyOf({ operationId }: Route): fc.Arbitrary<string> {
  const shape = shapes[operationId] ?? {};
  const record = fc.record(shape, { noNullPrototype: true });
  const partial = fc.record({ ...shape, extra: anything }, { requiredKeys: [], noNullPrototype: true });
  const asText = fc
    .oneof({ weight: 3, arbitrary: record }, partial, anything)
    .map((some) => JSON.stringify(some));
  return fc.oneof({ weight: 8, arbitrary: asText }, anyText);
}

const request = fc.constantFrom(...routes.filter(({ isStream }) => isStream !== true)).chain((route) =>
  fc.record({
    route: fc.constant(route),
    project: mostly('default'),
    name: mostly('github', 'TOKEN', 'kit'),
    query: fc.oneof(
      { weight: 3, arbitrary: fc.constant({}) },
      fc.dictionary(
        fc.constantFrom(
          ...['limit', 'since', 'status', 'replace', 'cursor', 'project', 'principal', 'action', 'name', 'x'],
        ),
        anyText,
      ),
    ),
    body: bodyOf(route),
  }),
);

it('responds to any input without an internal error', async () => {
  const faults: unknown[] = [];
  const { ask } = await serve((thrown) => faults.push(thrown));
  const done = new Set<string>();
  await fc.assert(
    fc.asyncProperty(request, async ({ route, project, name, query, body }) => {
      const path = route.path
        .split('/')
        .map((step) => (step.startsWith(':') ? encoded(step === ':project' ? project : name) : step))
        .join('/');
      const search = new URLSearchParams(query as Record<string, string>).toString();
      const sent = route.body === undefined ? undefined : body;
      const answer = await ask(`${route.method} ${path}?${search}`, sent);
      expect(faults).toEqual([]);
      if (answer.status < 400) {
        done.add(route.operationId);
        expect(route.answers[answer.status]?.safeParse(answer.body).error).toBe(undefined);
      } else {
        // Generated servers cannot be reached.
        if (answer.error.code !== 'server_unavailable') expect(answer.status).toBeLessThan(500);
        expect(answer.error).toMatchObject({ code: expect.any(String), message: expect.any(String) });
      }
    }),
    { numRuns: 2_000 },
  );
  // The test proves little unless some requests succeed.
  expect(done.size).toBeGreaterThan(15);
});

function encoded(part: unknown): string {
  return encodeURIComponent(String(part).toWellFormed());
}
