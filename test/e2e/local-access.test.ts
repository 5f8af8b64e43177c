import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { exchangeAsOther, requireOtherUser, startAsOther } from '../helpers/other-user.ts';
import { bothTypes, exchange, initialize } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const json = { 'content-type': 'application/json', accept: bothTypes };
const status = '/api/v1/status';

let switchboard: RunningSwitchboard;
let open: RunningSwitchboard;
let token: string;

beforeAll(async () => {
  const mcpServers = { box: fixtureServer('toolbox') };
  [switchboard, open] = await Promise.all([
    startSwitchboard(mcpServers),
    startSwitchboard(mcpServers, { localAccess: 'everyone' }),
  ]);
  token = (await readFile(join(switchboard.home, 'token'), 'utf8')).trim();
});

afterAll(() => Promise.all([switchboard?.stop(), open?.stop()]));

describe('a process of another user', () => {
  beforeEach((test) => requireOtherUser(test));

  it.each([
    ['GET', status, undefined],
    ['GET', '/api/v1/openapi.json', undefined],
    ['POST', '/api/v1/projects/default/servers/box/test', undefined],
    ['POST', '/mcp', initialize()],
    ['POST', '/mcp/default', initialize()],
    ['GET', '/sse', undefined],
    ['GET', '/nowhere', undefined],
    ['POST', '/messages?sessionId=x', initialize()],
  ])('is rejected at %s %s, with a hint how to get access', async (method, path, body) => {
    const answer = await exchangeAsOther(switchboard.baseUrl + path, { method, headers: json, body });
    expect(answer).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } });
    expect(answer.text).toContain('switchboard token');
    const isApi = path.startsWith('/api/');
    expect(answer.text.includes('localAccess')).toBe(!isApi);
    expect(JSON.parse(answer.text)).toMatchObject(
      isApi ? { error: { code: 'unauthorized' } } : { jsonrpc: '2.0', error: { code: -32600 } },
    );
  });

  it('cannot use up all connections: half of them are reserved for the owner', async () => {
    await using small = await startSwitchboard({}, { maxConnections: 4 });
    const child = startAsOther(
      `const { connect } = require('node:net');
      const { text } = require('node:stream/consumers');
      const open = () => new Promise((resolve) => {
        const socket = connect(${new URL(small.baseUrl).port}, '127.0.0.1', () => resolve(socket));
        socket.on('error', () => {});
      });
      Promise.all(Array.from({ length: 20 }, open)).then(async (sockets) => {
        console.log('open');
        const refusal = await Promise.race(sockets.map((socket) => text(socket)));
        console.log(refusal.split('\\r\\n').at(-1));
      });
      process.stdin.resume();`,
    );
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('open');
    const ask = () => exchange(small.baseUrl + status, { method: 'GET' });
    const answers = await Promise.all([ask(), ask()]);
    expect(answers.map((answer) => answer.status)).toEqual([200, 200]);
    expect((await lines.next()).value).toContain('Other users have 2 connections');
    child.kill();
    await once(child, 'exit');
  });

  it('gets access with the token', async () => {
    const headers = { ...json, authorization: `Bearer ${token}` };
    const asked = await exchangeAsOther(switchboard.baseUrl + status, { method: 'GET', headers });
    expect(asked.status).toBe(200);
    const greeted = await exchangeAsOther(switchboard.url, { headers, body: initialize() });
    expect(greeted.status).toBe(200);
  });

  it.each([
    ['another token', () => `Bearer ${'x'.repeat(token.length)}`],
    ['a part of it', () => `Bearer ${token.slice(0, -1)}`],
    ['nothing', () => 'Bearer '],
    ['another scheme', () => `Basic! ${token}`],
  ])('gets no access with %s', async (_what, authorization) => {
    const headers = { authorization: authorization() };
    const { status: code } = await exchangeAsOther(switchboard.baseUrl + status, { method: 'GET', headers });
    expect(code).toBe(401);
  });

  it('can use MCP if it is open to everyone, but not the API', async () => {
    expect((await exchangeAsOther(open.url, { headers: json, body: initialize() })).status).toBe(200);
    expect((await exchangeAsOther(open.baseUrl + status, { method: 'GET' })).status).toBe(401);
  });

  it.each(['/healthz', '/readyz', '/.well-known/oauth-protected-resource'])(
    'gets the public response from %s',
    async (path) => {
      const { status: code } = await exchangeAsOther(switchboard.baseUrl + path, { method: 'GET' });
      expect(code).toBe(path.startsWith('/healthz') || path.startsWith('/readyz') ? 200 : 404);
    },
  );

  it('gets no access from another request on the same connection', async () => {
    const child = startAsOther(
      `const { Agent, request } = require('node:http');
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const ask = (headers, then) => request(process.argv[1], { agent, headers }, (response) => {
        response.resume().on('end', () => then(response.statusCode));
      }).end();
      ask({ authorization: process.argv[2] }, (first) => setImmediate(() => ask({}, (second) => {
        console.log(first, second);
        process.exit();
      })));`,
      switchboard.baseUrl + status,
      `Bearer ${token}`,
    );
    expect(await text(child.stdout!)).toBe('200 401\n');
  });
});

describe('a process of the same user', () => {
  it('needs no token', async () => {
    expect((await exchange(switchboard.baseUrl + status, { method: 'GET' })).status).toBe(200);
    expect((await exchange(switchboard.url, { headers: json, body: initialize() })).status).toBe(200);
  });

  it('needs none with an IPv4-mapped IPv6 address either', async () => {
    const { host, port } = new URL(switchboard.baseUrl);
    const path = `http://[::ffff:127.0.0.1]:${port}${status}`;
    expect((await exchange(path, { method: 'GET', headers: { host } })).status).toBe(200);
  });

  it('gets access whatever token it sends', async () => {
    const headers = { authorization: 'Bearer of-something-else' };
    expect((await exchange(switchboard.baseUrl + status, { method: 'GET', headers })).status).toBe(200);
  });
});
