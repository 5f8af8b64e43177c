import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { bothTypes, exchange, initialize } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const json = { 'content-type': 'application/json', accept: bothTypes };
const page = 'http://localhost:6274';
const box = '/api/v1/projects/default/servers/box';
const tools = '/api/v1/projects/default/tools';

let switchboard: RunningSwitchboard;
let host: string;
let port: string;

setUp(async (use) => {
  switchboard = use(await startSwitchboard({ box: fixtureServer('toolbox') }, { allowedOrigins: [page] }));
  ({ host, port } = new URL(switchboard.baseUrl));
});

function ask(path: string, method: string, headers: Record<string, string>) {
  return exchange(switchboard.baseUrl + path, {
    method,
    headers: { ...(method === 'GET' ? {} : json), ...headers },
    body: path === '/mcp' && method === 'POST' ? initialize() : undefined,
  });
}

describe('a page of another origin', () => {
  const requests: [string, string][] = [
    ['GET', tools],
    ['POST', `${box}/test`],
    ['POST', '/api/v1/secrets/rotate'],
    ['POST', '/mcp'],
    ['GET', '/sse'],
    ['GET', '/healthz'],
  ];
  it.each(requests)('is rejected at %s %s, however it is recognized', async (method, path) => {
    const shown: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'same-site', origin: `http://127.0.0.1:${port}` },
      { origin: 'http://localhost:5173' },
      { origin: `https://localhost:${port}` },
      { origin: 'http://localhost' },
      { origin: `${page}.example` },
      { origin: 'null' },
      { host: 'localhost:1' },
      { host: '127.0.0.1' },
      { host: `localhost.example:${port}` },
    ];
    const answers = await Promise.all(shown.map((headers) => ask(path, method, headers)));
    expect(answers.map(({ status }) => status)).toEqual(shown.map(() => 403));
    for (const { headers } of answers) expect(headers).not.toHaveProperty('access-control-allow-origin');
  });

  it('and a tunnel get an error that explains how to allow them', async () => {
    for (const headers of [{ origin: 'http://localhost:5173' }, { host: 'localhost:8080' }]) {
      const { json } = await ask(tools, 'GET', headers);
      expect(json).toMatchObject({ error: { message: expect.stringContaining('allowedOrigins') } });
    }
  });

  it('starts no server', async () => {
    const { state } = (await ask(box, 'GET', {})).json as unknown as { state: string };
    expect(state).toBe('idle');
  });

  it.each([undefined, 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'cannot send what browsers send without a preflight: %s',
    async (type) => {
      const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
      const paths = [`${box}/test`, '/api/v1/secrets/rotate', '/mcp', '/api/v1/projects'];
      const answers = await Promise.all(
        paths.map((path) => exchange(switchboard.baseUrl + path, { headers, body: '{}' })),
      );
      expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 415));
      const bare = await exchange(`${switchboard.baseUrl}${box}/test`, { headers });
      expect(bare.status).toBe(415);
      const removal = await exchange(switchboard.baseUrl + box, {
        method: 'DELETE',
        headers: { ...headers, 'content-length': '2' },
        body: '{}',
      });
      expect(removal.status).toBe(415);
    },
  );

  it('is rejected in a preflight', async () => {
    const asked = { origin: 'http://localhost:5173', 'access-control-request-method': 'POST' };
    const { status, headers } = await ask('/mcp', 'OPTIONS', asked);
    expect(status).toBe(403);
    expect(headers).not.toHaveProperty('access-control-allow-origin');
  });
});

describe('a page of Switchboard, and a user who types the address', () => {
  it.each(['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]'])('are answered at %s', async (name) => {
    const origin = `http://${name.toLowerCase()}:${port}`;
    const own = { host: `${name}:${port}`, origin, 'sec-fetch-site': 'same-origin' };
    expect((await ask(box, 'GET', own)).status).toBe(200);
    expect((await ask('/mcp', 'POST', own)).status).toBe(200);
    expect((await ask(box, 'GET', { host: `${name}:${port}`, 'sec-fetch-site': 'none' })).status).toBe(200);
  });
});

describe('a page of a configured origin', () => {
  const cross = { origin: page, 'sec-fetch-site': 'cross-site' };

  it('can use MCP, and read the session id', async () => {
    const answer = await ask('/mcp', 'POST', cross);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({ 'access-control-allow-origin': page, vary: 'Origin' });
    expect(answer.headers['access-control-expose-headers']).toContain('Mcp-Session-Id');
  });

  it('can use the API', async () => {
    const answer = await ask(box, 'GET', cross);
    expect(answer).toMatchObject({ status: 200, headers: { 'access-control-allow-origin': page } });
    expect((await ask('/api/v1/nowhere', 'GET', cross)).headers['access-control-allow-origin']).toBe(page);
  });

  it('is allowed in a preflight', async () => {
    const wanted = 'content-type,mcp-protocol-version,mcp-session-id,last-event-id,mcp-method,mcp-name';
    const asked = {
      ...cross,
      'access-control-request-method': 'DELETE',
      'access-control-request-headers': wanted,
    };
    const { status, headers } = await ask('/mcp', 'OPTIONS', asked);
    expect(status).toBe(204);
    expect(headers).toMatchObject({
      'access-control-allow-origin': page,
      'access-control-allow-headers': wanted,
      'access-control-allow-methods': expect.stringContaining('DELETE'),
    });
  });

  it('is rejected if its browser does not send the origin', async () => {
    expect((await ask(tools, 'GET', { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  });
});

describe('a header that must be unique', () => {
  const lines = {
    Host: ['127.0.0.1:1', 'evil.example'],
    Origin: ['http://localhost:1'],
    'Content-Type': ['text/plain'],
    Authorization: ['Bearer x'],
    'Mcp-Session-Id': ['x'],
    'sec-fetch-site': ['none'],
  };
  const singles = {
    host: () => host,
    origin: () => `http://${host}`,
    'content-type': () => 'application/json',
    authorization: () => 'Bearer y',
    'mcp-session-id': () => 'y',
    'sec-fetch-site': () => 'same-origin',
  };

  it.each(Object.entries(lines))('is rejected if it is repeated: %s', async (name, seconds) => {
    for (const second of seconds) {
      const socket = connect(Number(port), '127.0.0.1');
      const first = Object.entries(singles).map(([header, value]) => `${header}: ${value()}\r\n`);
      socket.write(`POST /mcp HTTP/1.1\r\n${first.join('')}${name}: ${second}\r\nConnection: close\r\n\r\n`);
      const answer = await text(socket);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain('repeated_header');
      if (!socket.closed) await once(socket, 'close');
    }
  });
});
