import { describe, expect, it } from 'vitest';
import { bothTypes, exchange, initialize, type RawRequest, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const plain = { 'content-type': 'application/json', accept: bothTypes };

let switchboard: RunningSwitchboard;
let session: RawSession;

setUp(async (use) => {
  switchboard = use(
    await startSwitchboard({ box: fixtureServer('toolbox') }, { maxMessageBytes: 100_000, pageSize: 2 }),
  );
  session = await RawSession.open(switchboard.url);
});

describe('a request to /mcp', () => {
  const refusals: [string, RawRequest & { noSession?: boolean }, { status: number; code?: number }][] = [
    ['without a session', { noSession: true }, { status: 400, code: -32600 }],
    ['that listens without a session', { method: 'GET', noSession: true }, { status: 400, code: -32600 }],
    ['that ends no session', { method: 'DELETE', noSession: true }, { status: 400, code: -32600 }],
    ['of an unknown session', { headers: { 'mcp-session-id': 'gone' } }, { status: 404, code: -32600 }],
    ['of another content type', { headers: { 'content-type': 'text/plain' } }, { status: 415 }],
    ['that is nearly JSON', { headers: { 'content-type': 'application/json-patch+json' } }, { status: 415 }],
    ['that accepts neither answer', { headers: { accept: 'text/html' } }, { status: 406 }],
    [
      'that listens but takes no events',
      { method: 'GET', headers: { accept: 'application/json' } },
      { status: 406 },
    ],
    ['that is no JSON', { body: '{"jsonrpc":' }, { status: 400, code: -32700 }],
    ['with an empty body', { body: '' }, { status: 400, code: -32700 }],
    ['that is no JSON-RPC', { body: '{"hello":"world"}' }, { status: 400, code: -32600 }],
    ['that is JSON but no object', { body: '42' }, { status: 400, code: -32600 }],
    ['without "jsonrpc"', { body: { id: 1, method: 'ping' } }, { status: 400, code: -32600 }],
    ['with null for an id', { body: { ...ping, id: null } }, { status: 400, code: -32600 }],
    ['with a fraction for an id', { body: '{"jsonrpc":"2.0","id":1.5,"method":"ping"}' }, { status: 400 }],
    ['of an unknown version', { headers: { 'mcp-protocol-version': '1999-01-01' } }, { status: 400 }],
    ['from a foreign page', { headers: { origin: 'https://evil.example' } }, { status: 403 }],
    ['from a sandboxed page', { headers: { origin: 'null' } }, { status: 403 }],
    ['under a foreign name', { headers: { host: 'evil.example' } }, { status: 403 }],
    ['with an event id of nobody', { method: 'GET', headers: { 'last-event-id': '17_4' } }, { status: 400 }],
  ];

  it.each(refusals)('%s is rejected', async (_what, { noSession, headers, ...request }, expected) => {
    const base = noSession ? plain : session.headers();
    const answer = await exchange(switchboard.url, {
      // Bytes after the head would be parsed as the next request.
      body: request.method === undefined ? ping : undefined,
      ...request,
      headers: { ...base, ...headers },
    });
    expect(answer.status).toBe(expected.status);
    expect(answer.json).toMatchObject({ jsonrpc: '2.0', id: null, error: { message: expect.any(String) } });
    if (expected.code !== undefined) expect(answer.json?.error?.code).toBe(expected.code);
  });

  it('with another method is rejected with the allowed methods', async () => {
    const answer = await exchange(switchboard.url, { method: 'PUT', headers: session.headers(), body: ping });
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBe('POST, GET, DELETE');
  });

  it('from a local page and under a local host name is answered', async () => {
    const { port } = new URL(switchboard.url);
    const headers = { origin: `http://localhost:${port}`, host: `localhost:${port}` };
    expect((await session.post(ping, headers)).status).toBe(200);
  });

  it.each(['declared', 'chunked'])(
    'that is too large (%s) is rejected, and the next one is not',
    async (how) => {
      const body = JSON.stringify({ ...ping, params: { padding: 'x'.repeat(20_000_000) } });
      const headers =
        how === 'declared' ? { 'content-length': String(body.length) } : { 'transfer-encoding': 'chunked' };
      const answer = await session.post(body, headers);
      expect(answer.status).toBe(413);
      expect(answer.json?.error?.message).toContain('100000 bytes');
      expect((await session.post(ping)).status).toBe(200);
    },
  );

  it('with a charset in its content type is answered', async () => {
    expect((await session.post(ping, { 'content-type': 'application/json; charset=utf-8' })).status).toBe(
      200,
    );
  });

  it('without an Accept header is answered as JSON', async () => {
    const { accept: _accept, ...headers } = session.headers();
    const answer = await exchange(switchboard.url, { headers, body: ping });
    expect(answer.json).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
  });

  it('that accepts only events gets its response as an event', async () => {
    const answer = await session.post(ping, { accept: 'text/event-stream' });
    expect(answer.headers['content-type']).toBe('text/event-stream');
    expect(answer.headers['x-accel-buffering']).toBe('no');
    expect(answer.text).toContain('data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n');
  });

  it('with an unknown method gets an error under its id', async () => {
    const answer = await session.post({ ...ping, id: 'x', method: 'tools/juggle' });
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      id: 'x',
      error: { code: -32601, message: 'Unknown method: tools/juggle' },
    });
  });

  it.each([
    ['tools/call', {}],
    ['tools/call', { name: 7 }],
    ['prompts/get', {}],
    ['resources/read', { uri: null }],
    ['resources/subscribe', {}],
    ['completion/complete', { ref: { type: 'ref/prompt' } }],
    ['logging/setLevel', { level: 'loud' }],
    ['tools/list', { cursor: 5 }],
  ])('%s with the params %j gets invalid params', async (method, params) => {
    expect(await session.request(method, params)).toMatchObject({ error: { code: -32602 } });
  });

  it('for an unknown tool gets an error that names it [A4]', async () => {
    expect(await session.call('juggle')).toMatchObject({
      error: { code: -32602, message: 'Unknown tool: juggle', data: { code: 'unknown_tool' } },
    });
  });

  it.each([
    '0',
    '7',
    '-3',
    '9007199254740993',
    '123456789012345678901234567890',
    '""',
    '"seven"',
    '"7"',
    '"\\u00e9\\n\\"quoted\\""',
    '"𝄞"',
  ])('with the id %s gets that id back', async (id) => {
    const ours = await session.post(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
    expect(ours.text).toBe(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
    const params = '{"name":"echo","arguments":{"text":"hi"}}';
    const theirs = await session.post(
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`,
    );
    expect([',', '}'].some((end) => theirs.text.includes(`"id":${id}${end}`))).toBe(true);
    expect(theirs.json).toMatchObject({ result: { content: [{ text: 'hi' }] } });
  });

  it('that is a notification or a response is accepted without a body', async () => {
    for (const body of [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/of/the/future', params: {} },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'none' } },
      { jsonrpc: '2.0', method: 'notifications/cancelled' },
      { jsonrpc: '2.0', id: 99, result: {} },
      { jsonrpc: '2.0', id: 'x', error: { code: 1, message: 'no' } },
    ]) {
      expect(await session.post(body)).toMatchObject({ status: 202, text: '' });
    }
  });
});

describe('initialize', () => {
  it.each([
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2024-11-05'],
    ['2031-01-01', '2025-11-25'],
  ])('for version %s returns %s', async (wanted, given) => {
    const answer = await exchange(switchboard.url, { headers: plain, body: initialize(wanted, 'first') });
    expect(answer.headers['mcp-session-id']).toMatch(/^[\x21-\x7e]+$/);
    expect(answer.json).toMatchObject({
      id: 'first',
      result: { protocolVersion: given, serverInfo: { name: 'switchboard' }, capabilities: { tools: {} } },
    });
  });

  it('without a version is rejected under its id', async () => {
    const body = { jsonrpc: '2.0', id: 5, method: 'initialize', params: {} };
    const answer = await exchange(switchboard.url, { headers: plain, body });
    expect(answer).toMatchObject({ status: 400, json: { id: 5, error: { code: -32602 } } });
  });

  it('opens a session once', async () => {
    const own = await RawSession.open(switchboard.url);
    const answer = await own.post(initialize('2025-11-25', 1));
    expect(answer.headers['mcp-session-id']).not.toBe(own.id);
  });
});

describe('a batch', () => {
  it('of a 2025-03-26 session gets one array, without its notifications', async () => {
    const own = await RawSession.open(switchboard.url, '2025-03-26');
    const call = { name: 'echo', arguments: { text: 'hi' } };
    const answer = await own.post([
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 'a', method: 'tools/call', params: call },
      { ...ping, id: 2 },
      { ...ping, id: 3, method: 'nonsense' },
    ]);
    expect(answer.headers['content-type']).toBe('application/json');
    const answers = answer.json as unknown as { id: unknown }[];
    expect(answers.toSorted((left, right) => String(left.id).localeCompare(String(right.id)))).toMatchObject([
      { id: 2, result: {} },
      { id: 3, error: { code: -32601 } },
      { id: 'a', result: { content: [{ text: 'hi' }] } },
    ]);
  });

  it('of notifications only is accepted', async () => {
    const own = await RawSession.open(switchboard.url, '2025-03-26');
    expect((await own.post([{ jsonrpc: '2.0', method: 'notifications/initialized' }])).status).toBe(202);
  });

  it('that is empty is rejected', async () => {
    const own = await RawSession.open(switchboard.url, '2025-03-26');
    expect(await own.post([])).toMatchObject({ status: 400, json: { error: { code: -32600 } } });
  });

  it.each(['2025-06-18', '2025-11-25'])('of a %s session is rejected', async (version) => {
    const own = await RawSession.open(switchboard.url, version);
    expect(await own.post([ping])).toMatchObject({ status: 400, json: { error: { code: -32600 } } });
  });
});

describe('a list', () => {
  it('is paged, and contains each tool once', async () => {
    const names: string[] = [];
    let cursor: unknown;
    do {
      const { result = {} } = await session.request('tools/list', cursor === undefined ? {} : { cursor });
      const page = (result.tools as { name: string }[]).map(({ name }) => name);
      expect(page.length).toBeLessThanOrEqual(2);
      names.push(...page);
      cursor = result.nextCursor;
    } while (cursor !== undefined);
    expect(names).toEqual(['echo', 'pid', 'environment', 'progress', 'wait', 'log', 'add', 'flood']);
  });

  it.each(['nonsense', '', 'WyJib3giXQ', 'bnVsbA', '💥'])(
    'with the cursor %j is rejected',
    async (cursor) => {
      expect(await session.request('tools/list', { cursor })).toMatchObject({ error: { code: -32602 } });
    },
  );
});

describe('other paths', () => {
  it.each(['/healthz', '/readyz'])('%s reports that the server is healthy', async (path) => {
    const answer = await exchange(switchboard.baseUrl + path, { method: 'GET' });
    expect(answer).toMatchObject({ status: 200, json: { status: 'ok' } });
  });

  it('that do not exist return 404 with a hint', async () => {
    const answer = await exchange(`${switchboard.baseUrl}/`, { method: 'GET' });
    expect(answer.status).toBe(404);
    expect(answer.json?.error?.message).toContain('/mcp');
  });

  it.each([
    ['/sse', 'POST', 'GET'],
    ['/messages?sessionId=x', 'GET', 'POST'],
    ['/healthz', 'POST', 'GET, HEAD'],
    ['/api/v1/status', 'POST', 'GET, HEAD'],
  ])('%s rejects %s and lists the allowed methods', async (path, method, allowed) => {
    const answer = await exchange(switchboard.baseUrl + path, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBe(allowed);
  });

  it.each(['/healthz', '/sse', '/api/v1/projects/default/servers'])(
    '%s rejects foreign origins',
    async (path) => {
      const answer = await exchange(switchboard.baseUrl + path, {
        method: 'GET',
        headers: { host: 'evil.example' },
      });
      expect(answer.status).toBe(403);
    },
  );
});
