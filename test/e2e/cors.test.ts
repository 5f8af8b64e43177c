import { describe, expect, it } from 'vitest';
import { bothTypes, exchange, initialize, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { addKey, tokenHeader } from '../helpers/with-key.ts';

const page = 'https://app.example';
const own = 'https://sb.example';
const json = { 'content-type': 'application/json', accept: bothTypes };
const status = '/api/v1/status';

let switchboard: RunningSwitchboard;
let key: { authorization: string };

setUp(async (use) => {
  switchboard = use(
    await startSwitchboard(
      { box: fixtureServer('toolbox') },
      { allowedOrigins: [page] },
      { args: ['--public-url', own], database: 'shared' },
    ),
  );
  key = { authorization: `Bearer ${await addKey(switchboard, { name: 'page', role: 'caller' })}` };
});

/** What a browser adds to the requests of a page. */
function from(origin: string): Record<string, string> {
  return { origin, 'sec-fetch-site': origin === own ? 'same-origin' : 'cross-site', host: 'sb.example' };
}

function ask(path: string, method: string, headers: Record<string, string>) {
  const body = method === 'POST' && path.startsWith('/mcp') ? initialize() : undefined;
  return exchange(switchboard.baseUrl + path, { method, headers, body });
}

function preflight(origin: string, path: string, method: string, ...headers: string[]) {
  return ask(path, 'OPTIONS', {
    ...from(origin),
    'access-control-request-method': method,
    'access-control-request-headers': headers.join(),
  });
}

/** How often the key was refused, once that is more than never. It is written a moment later. */
async function refusalsOf(id: string): Promise<number> {
  const headers = await tokenHeader(switchboard.home);
  const refused = async () => {
    const answer = await ask('/api/v1/audit?outcome=refused', 'GET', headers);
    const { entries } = answer.json as { entries?: { subject: string; count: number }[] };
    return entries!.filter(({ subject }) => subject.includes(id)).reduce((sum, { count }) => sum + count, 0);
  };
  await expect.poll(refused).toBeGreaterThan(0);
  return refused();
}

describe('a page of a configured origin, with authentication', () => {
  it.each([
    ['/mcp', 'POST', ['authorization', 'content-type', 'mcp-protocol-version']],
    ['/mcp', 'POST', ['authorization', 'content-type', 'mcp-method', 'mcp-name']],
    ['/mcp', 'GET', ['authorization', 'mcp-session-id', 'last-event-id']],
    ['/mcp', 'DELETE', ['authorization', 'mcp-session-id']],
    ['/sse', 'GET', ['authorization']],
    ['/messages', 'POST', ['authorization', 'content-type']],
    [status, 'PATCH', ['authorization', 'content-type', 'if-match']],
  ])(
    'may ask first whether it may send a key to %s (%s), which a browser does without one',
    async (path, method, names) => {
      const answer = await preflight(page, path, method, ...names);
      expect(answer).toMatchObject({
        status: 204,
        text: '',
        headers: {
          'access-control-allow-origin': page,
          'access-control-allow-headers': names.join(),
          'access-control-allow-methods': expect.stringContaining(method),
        },
      });
      // The key is in a header of the page, and not one that a browser adds on its own.
      expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
    },
  );

  it('can use MCP and the API with its key', async () => {
    const session = await RawSession.open(
      `${switchboard.baseUrl}/mcp`,
      undefined,
      {},
      { ...from(page), ...key },
    );
    expect(await session.callText('echo', { text: 'shown' })).toBe('shown');
    const stream = await session.listen();
    expect(stream.response.headers['access-control-allow-origin']).toBe(page);
    await session.end();
    const answer = await ask(status, 'GET', { ...from(page), ...key });
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'access-control-allow-origin': page, vary: 'Origin' },
    });
  });

  it.each(['/mcp', '/sse', status])('can read why it is refused without a key at %s', async (path) => {
    const method = path === '/mcp' ? 'POST' : 'GET';
    const wrong = { authorization: `${key.authorization}x` };
    for (const given of [{}, wrong]) {
      const answer = await ask(path, method, { ...json, ...from(page), ...given });
      expect(answer.status).toBe(401);
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': page,
        'www-authenticate': expect.stringMatching(/^Bearer/),
      });
      const readable = String(answer.headers['access-control-expose-headers']).toLowerCase().split(', ');
      expect(readable).toEqual(expect.arrayContaining(['www-authenticate', 'retry-after', 'mcp-session-id']));
    }
  });

  it('can read how long to wait', async () => {
    const headers = { ...json, ...(await tokenHeader(switchboard.home)) };
    const limits = `${switchboard.baseUrl}/api/v1/limits`;
    const made = await exchange(limits, { headers, body: { principal: 'page', per_minute: 1 } });
    expect(made.status, made.text).toBe(201);
    const { id } = made.json as { id?: string };
    const request = () => ask(status, 'GET', { ...from(page), ...key });
    let answer = await request();
    for (let count = 0; answer.status === 200 && count < 10; count++) answer = await request();
    const removed = await exchange(`${limits}/${id}`, { method: 'DELETE', headers });
    expect(removed.status).toBe(204);
    expect(answer).toMatchObject({ status: 429, headers: { 'access-control-allow-origin': page } });
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(answer.headers['access-control-expose-headers']).toContain('Retry-After');
  });
});

describe('a page of another origin, with authentication', () => {
  const others = [
    'https://evil.example',
    'null',
    `${page}.evil.example`,
    'http://app.example',
    'http://sb.example',
  ];

  it.each(others)('is refused before anybody looks at its key: %s', async (origin) => {
    const bearer = await addKey(switchboard, { name: `of ${others.indexOf(origin)}`, role: 'caller' });
    const wrong = { authorization: `Bearer ${bearer.slice(0, -1)}${bearer.endsWith('x') ? 'y' : 'x'}` };
    for (const given of [{}, key, wrong, await tokenHeader(switchboard.home)]) {
      for (const path of ['/mcp', '/sse', status]) {
        const method = path === '/mcp' ? 'POST' : 'GET';
        const { status: code, headers } = await ask(path, method, { ...json, ...from(origin), ...given });
        expect(code).toBe(403);
        expect(headers).not.toHaveProperty('access-control-allow-origin');
        expect(headers).not.toHaveProperty('www-authenticate');
      }
    }
    const answer = await preflight(origin, '/mcp', 'POST', 'authorization');
    expect(answer.status).toBe(403);
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
    // Only this one counts as an attempt.
    expect((await ask(status, 'GET', { ...from(page), ...wrong })).status).toBe(401);
    expect(await refusalsOf(bearer.slice('sbk_'.length).slice(0, 12))).toBe(1);
  });
});

describe('a page of the public address', () => {
  it('is of the same origin', async () => {
    expect((await ask(status, 'GET', { ...from(own), ...key })).status).toBe(200);
    expect((await ask(status, 'GET', from(own))).status).toBe(401);
  });

  it('is not one of another port or scheme', async () => {
    for (const origin of ['https://sb.example:8443', 'http://sb.example']) {
      expect((await ask(status, 'GET', { ...key, ...from(own), origin })).status).toBe(403);
    }
  });

  it('does not make other names of the Host header acceptable', async () => {
    for (const host of ['evil.example', 'sb.example:8443', 'sb.example.evil.example']) {
      expect((await ask(status, 'GET', { ...key, host })).status).not.toBe(200);
    }
    for (const host of ['sb.example', 'SB.example', 'sb.example:443']) {
      expect((await ask(status, 'GET', { ...key, host })).status).toBe(200);
    }
  });
});
