import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { RunDetails } from '../../src/api/chat-views.ts';
import type { CallView } from '../../src/api/views.ts';
import { Inbox } from '../helpers/inbox.ts';
import { patienceMs } from '../helpers/patience.ts';
import { EventStream, openExchange, type RawEvent } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { AccessScene, bearer } from './scene.ts';

const SECRET_COMMAND = '/opt/private/secret-tool-name';

let scene: AccessScene;
setUp(async (use) => {
  scene = use(
    await AccessScene.start({
      servers: {
        github: fixtureServer('offers-guarded-items'),
        broken: { command: SECRET_COMMAND },
        crashing: fixtureServer('crashes-in-call'),
      },
    }),
  );
});

const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

/** Sends the head of a POST and the first byte of its body. */
function begin(path: string, body: object, key: string) {
  const { hostname, port, host } = new URL(scene.switchboard.baseUrl);
  const bytes = Buffer.from(JSON.stringify(body));
  const socket = connect(Number(port), hostname);
  sockets.add(socket);
  const received = new Inbox<string>();
  const text = () => received.items.join('');
  socket.on('data', (chunk) => received.add(String(chunk)));
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const lines = [
    ...[`POST /api/v1${path} HTTP/1.1`, `host: ${host}`, `authorization: ${bearer(key).authorization}`],
    // The response to the last says that the head has arrived.
    ...['content-type: application/json', `content-length: ${bytes.length}`, 'expect: 100-continue'],
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  socket.write(bytes.subarray(0, 1));
  return {
    ...{ closed, text },
    arrived: received.first(() => text().includes('100 Continue')),
    answered: received.first(() => /HTTP\/1\.1 [2-5]/.test(text())),
    finish: () => void socket.write(bytes.subarray(1)),
  };
}

async function follow(key: string): Promise<EventStream> {
  const url = `${scene.switchboard.baseUrl}/api/v1/projects/default/events`;
  return new EventStream(await openExchange(url, { method: 'GET', headers: bearer(key) }));
}

const grant = (principal: string, role: string) =>
  scene.done('PUT /grants', { principal, project: 'default', role });

/** Asks until there is an answer. */
async function eventually<Found>(ask: () => Promise<Found | undefined>): Promise<Found> {
  const deadline = Date.now() + patienceMs / 2;
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error('It did not happen.');
    await delay(20);
  }
}

async function revokeGrants(holder: string): Promise<void> {
  const { grants } = await scene.done<{ grants: { id: string; holder: { id: string } }[] }>('GET /grants');
  for (const grant of grants) if (grant.holder.id === holder) await scene.done(`DELETE /grants/${grant.id}`);
}

describe('a request whose body arrives late', () => {
  const addKey = () => ({ name: `late-${randomUUID().slice(0, 8)}`, role: 'viewer', project: 'default' });
  const hasKey = async (name: string) =>
    (await scene.done<{ keys: { name: string }[] }>('GET /keys')).keys.some((key) => key.name === name);

  it.each<[string, object, (key: { id: string }) => Promise<unknown>]>([
    ['was revoked', {}, ({ id }) => scene.done(`DELETE /keys/${id}`)],
    ['was replaced', {}, ({ id }) => scene.done(`POST /keys/${id}/rotate`, { overlap_ms: 0 })],
    ['expires', { expiring: true }, async () => {}],
  ])('fails at once when its key %s', async (_what, { expiring }: { expiring?: boolean }, end) => {
    const expires_at = expiring ? new Date(Date.now() + 1_500).toISOString() : undefined;
    const admin = await scene.newKey({
      role: 'admin',
      project: undefined,
      ...(expires_at && { expires_at }),
    });
    const body = addKey();
    const late = await begin('/keys', body, admin.key);
    await late.arrived;
    await end(admin);
    await late.closed;
    expect(late.text()).toContain('HTTP/1.1 401 ');
    late.finish();
    expect(await hasKey(body.name)).toBe(false);
  });

  it.each<[string, string, (key: { id: string }) => Promise<unknown>]>([
    ['no role any more', '404', ({ id }) => revokeGrants(id)],
    ['a lower role', '403', ({ id }) => grant(id, 'viewer')],
  ])('is decided again: its key has %s', async (_what, status, change) => {
    const operator = await scene.newKey({ role: 'operator' });
    const server = { name: `late-${status}`, transport: 'stdio', config: { command: 'true' } };
    const late = await begin('/projects/default/servers', server, operator.key);
    await late.arrived;
    await change(operator);
    late.finish();
    await late.answered;
    expect(late.text()).toContain(`HTTP/1.1 ${status} `);
    expect((await scene.ask(`GET /projects/default/servers/${server.name}`)).status).toBe(404);
  });
});

it('names no project that the sender does not see, when several keys have a name', async () => {
  await scene.done('POST /projects', { name: 'topsecret' });
  const owner = await scene.newKey({ role: 'owner' });
  const near = await scene.newKey({ name: 'dup' });
  const far = await scene.newKey({ name: 'dup', project: 'topsecret' });
  await scene.done('PUT /grants', { principal: far.id, project: 'default', role: 'viewer' });
  const ask = (principal: string) =>
    scene.ask(`GET /can?project=default&principal=${encodeURIComponent(principal)}`, undefined, owner.key);
  const ambiguous = await ask('dup');
  expect(ambiguous.status).toBe(409);
  expect(ambiguous.text).toContain(near.id);
  expect(ambiguous.text).toContain(far.id);
  expect(ambiguous.text).not.toContain('topsecret');
  const [hidden, none] = [await ask('topsecret/dup'), await ask('nosuchone/dup')];
  expect(hidden.status).toBe(404);
  expect(hidden.text.replace('topsecret', 'nosuchone')).toBe(none.text);
  expect((await ask('default/dup')).status).toBe(200);
  expect((await ask(far.id)).status).toBe(200);
});

it('tells only operators why servers fail', async () => {
  const keys = await Promise.all(
    (['operator', 'viewer', 'caller'] as const).map((role) => scene.newKey({ role })),
  );
  const [operator, ...others] = await Promise.all(
    keys.map(async ({ key }) => ({ key, stream: await follow(key) })),
  );
  await (await scene.session(operator!.key)).toolNames();
  const failure = ({ event, data = '' }: RawEvent) =>
    event === 'server' && data.includes('"name":"broken"') && /"state":"(backing_off|failed)"/.test(data);
  const { data } = await operator!.stream.events.first(failure);
  expect(data).toContain('secret-tool-name');
  const paths = ['', '/servers', '/servers/broken', '/tools', '/runs'].map(
    (end) => `/projects/default${end}`,
  );
  for (const { key, stream } of others) {
    await stream.events.first(failure);
    expect(JSON.stringify(stream.events.items)).not.toContain('secret-tool-name');
    for (const path of [...paths, '/projects', '/mcp/servers', '/status', '/whoami'])
      expect((await scene.ask(`GET ${path}`, undefined, key)).text, path).not.toContain('secret-tool-name');
  }
  for (const { stream } of [operator!, ...others]) await stream.cut();
});

it('tells callers not why calls of their runs have failed', async () => {
  const run = { agent: 'a', model: 'm', input: 'x' };
  const keys = [await scene.newKey({ role: 'operator' }), await scene.newKey()];
  const errors: string[] = [];
  for (const { key } of keys) {
    const { id } = await scene.done<{ id: string }>('POST /projects/default/runs', run, key);
    const session = await scene.session(key);
    const params = { name: 'crash', arguments: {}, _meta: { 'dev.switchboard/run': { id, step: 1 } } };
    await session.request('tools/call', params);
    errors.push(
      await eventually(async () => {
        const path = `GET /projects/default/runs/${id}`;
        const { tool_calls } = await scene.done<RunDetails>(path, undefined, key);
        return tool_calls[0]?.error?.message;
      }),
    );
  }
  expect(errors[0]).toContain('out of luck');
  expect(errors[1]).toMatch(/^Server "crashing" is not available/);
  expect(errors[1]).not.toContain('luck');
});

it('tells callers of a hosted server not why it fails', async () => {
  const server = { name: 'boxed', provider: 'process', command: SECRET_COMMAND };
  const { id } = await scene.done<{ id: string }>('POST /mcp/servers', server);
  const read = { method: 'resources/read', params: { uri: 'file:///a' } };
  const [operator, caller] = [await scene.newKey({ role: 'operator' }), await scene.newKey()];
  const call = ({ key }: { key: string }) => scene.ask(`POST /mcp/servers/${id}/call`, read, key);
  expect((await call(operator)).text).toContain('secret-tool-name');
  const { status, text } = await call(caller);
  expect([status, text]).toEqual([expect.any(Number), expect.stringContaining('boxed')]);
  expect(status).toBeGreaterThanOrEqual(500);
  expect(text).not.toContain('secret-tool-name');
  await scene.done(`DELETE /mcp/servers/${id}`);
});

it('refuses whole keys in the URL, however they are spelled, and no other names', async () => {
  const { key } = await scene.newKey({ role: 'operator' });
  const deletion = (name: string) => scene.ask(`DELETE /projects/default/servers/${name}`, undefined, key);
  expect((await deletion('sbk_x')).status).toBe(404);
  expect((await deletion('100%25_sbk_x%zz')).status).not.toBe(401);
  const encoded = [...key].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
  for (const spelled of [key, key.replace('_', '%5F'), encoded]) {
    const { status, text } = await deletion(spelled);
    expect([status, text]).toEqual([401, expect.stringContaining('must not be in the URL')]);
  }
});

it('records no call in the run of another principal', async () => {
  const [mine, other] = [await scene.newKey(), await scene.newKey()];
  const run = { agent: 'a', model: 'm', input: 'x' };
  const { id } = await scene.done<{ id: string }>('POST /projects/default/runs', run, mine.key);
  const local = await scene.done<{ id: string }>('POST /projects/default/runs', run);
  const call = async (key: string, run: string) => {
    const meta = { 'dev.switchboard/run': { id: run, step: 1 } };
    const session = await scene.session(key);
    return session.request('tools/call', { name: 'touch', arguments: {}, _meta: meta });
  };
  for (const run of [id, local.id]) expect((await call(other.key, run)).result).toBeDefined();
  expect((await call(mine.key, id)).result).toBeDefined();
  const recorded = await eventually(async () => {
    const path = `GET /projects/default/calls?principal=${other.id}`;
    const { calls } = await scene.done<{ calls: CallView[] }>(path);
    const { tool_calls } = await scene.done<RunDetails>(
      `GET /projects/default/runs/${id}`,
      undefined,
      mine.key,
    );
    return calls.length === 2 && tool_calls.length > 0 ? { calls, tool_calls } : undefined;
  });
  expect(recorded.calls.map(({ run_id }) => run_id)).toEqual([null, null]);
  expect(recorded.tool_calls.map(({ principal }) => principal?.id)).toEqual([mine.id]);
  const ofLocal = await scene.done<RunDetails>(`GET /projects/default/runs/${local.id}`);
  expect(ofLocal.tool_calls).toEqual([]);
});

it('does not let an owner allow what an administrator denies in all projects', async () => {
  const owner = await scene.newKey({ role: 'owner' });
  await scene.done('POST /rules', { effect: 'deny', kind: 'tool', name: 'delete_*' });
  const rule = {
    effect: 'allow',
    project: 'default',
    kind: 'tool',
    name: 'delete_repo',
    subject: { principal: owner.id },
  };
  await scene.done('POST /rules', rule, owner.key);
  const path = '/can?action=call&name=delete_repo&server=github&kind=tool&project=default';
  expect(await scene.done(`GET ${path}`, undefined, owner.key)).toMatchObject({ allowed: false });
  const session = await scene.session(owner.key);
  expect((await session.call('delete_repo')).error).toBeDefined();
  expect(await session.toolNames()).not.toContain('delete_repo');
});
