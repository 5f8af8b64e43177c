import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { exchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { AccessScene, bearer } from './scene.ts';

describe('with authentication', () => {
  let scene: AccessScene;
  setUp(async (use) => {
    scene = use(await AccessScene.start());
  });

  const lookalike = () => `sbk_${randomBytes(41).toString('base64url').slice(0, 55)}`;

  it.each<[string, () => Record<string, string>]>([
    ['without a credential', () => ({})],
    ['with an empty one', () => ({ authorization: 'Bearer ' })],
    ['with another scheme', () => ({ authorization: `Basic ${lookalike()}` })],
    ['with a key that never existed', () => bearer(lookalike())],
    ['with something else', () => bearer('x'.repeat(10_000))],
    ['with control characters', () => bearer('sbk_\u0001\u007f')],
  ])('a request %s is refused, over MCP and the API', async (_what, headers) => {
    for (const path of [
      '/mcp',
      '/mcp/default',
      '/mcp/nothing',
      '/sse',
      '/api/v1/status',
      '/api/v1/nothing',
    ]) {
      const answer = await exchange(scene.switchboard.baseUrl + path, {
        method: path === '/sse' || path.startsWith('/api') ? 'GET' : 'POST',
        headers: { 'content-type': 'application/json', ...headers() },
      }).catch((error: Error) => error);
      // Node's own client refuses to send control characters.
      if (answer instanceof Error) continue;
      expect([answer.status, answer.headers['www-authenticate']], path).toEqual([401, 'Bearer']);
      expect(answer.text).toContain('unauthorized');
    }
  });

  it('a request without a key is audited, with the address', async () => {
    await scene.initialize({});
    const entry = await scene.audited(
      'action=authenticate',
      ({ subject }) => subject?.includes('none') === true,
    );
    expect(entry).toMatchObject({ outcome: 'refused', address: '127.0.0.1' });
  });

  it('the scheme may have any case', async () => {
    const key = await scene.addKey();
    expect((await scene.initialize({ authorization: `bearer ${key}` })).status).toBe(200);
    expect((await scene.initialize({ authorization: `BEARER ${key}` })).status).toBe(200);
  });

  it.each(['?key=', '?access_token=', '/', '?sessionId=x&a='])(
    'a key in the URL is refused, even beside a valid one, and audited (%s)',
    async (place) => {
      const { id, key } = await scene.newKey();
      const answer = await exchange(`${scene.switchboard.baseUrl}/mcp${place}${key}`, {
        headers: { ...bearer(key), 'content-type': 'application/json' },
        body: {},
      });
      expect(answer.status).toBe(401);
      expect(answer.text).toContain('must not be in the URL');
      expect(answer.text).not.toContain(key);
      const entry = await scene.audited(
        `action=authenticate&principal=${id}`,
        ({ subject }) => subject?.includes('in the URL') === true,
      );
      expect(JSON.stringify(entry)).not.toContain(key.slice(20));
    },
  );

  it('a revoked key is refused at once, on the same connection too, and its attempt is audited', async () => {
    const { id, key } = await scene.newKey();
    const session = await scene.session(key);
    expect(await session.toolNames()).toContain('list_repos');
    await scene.done(`DELETE /keys/${id}`);
    const answer = await session.post({ jsonrpc: '2.0', id: 9, method: 'ping' });
    expect([answer.status, answer.json?.error?.data?.code]).toEqual([401, 'unauthorized']);
    const publicId = key.slice(4, 16);
    await scene.audited('action=authenticate', ({ subject }) => subject?.includes(publicId) === true);
  });

  it('an expired key is refused, says so, and is audited in its name', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const { id, key } = await scene.newKey({ expires_at });
    const session = await scene.session(key);
    const stream = await session.listen();
    await scene.done(`PATCH /keys/${id}`, { expires_at: new Date(Date.now() + 300).toISOString() });
    await stream.ended;
    const answer = await scene.initialize(bearer(key));
    expect(answer.status).toBe(401);
    expect(answer.text).toContain('expired');
    await scene.audited(
      `action=authenticate&principal=${id}`,
      ({ subject, outcome }) => outcome === 'refused' && subject?.includes('expired') === true,
    );
  });

  it('after a rotation both keys work until the overlap is over', async () => {
    const { id, key } = await scene.newKey();
    const rotated = await scene.done<{ key: string }>(`POST /keys/${id}/rotate`, { overlap_ms: 3_600_000 });
    expect(rotated.key).not.toBe(key);
    for (const text of [key, rotated.key]) expect((await scene.initialize(bearer(text))).status).toBe(200);
    const session = await scene.session(key);
    // The same principal: its sessions are reached with either key.
    expect((await session.post({ jsonrpc: '2.0', id: 1, method: 'ping' }, bearer(rotated.key))).status).toBe(
      200,
    );
    const again = await scene.done<{ key: string }>(`POST /keys/${id}/rotate`, { overlap_ms: 0 });
    for (const text of [key, rotated.key]) expect((await scene.initialize(bearer(text))).status).toBe(401);
    expect((await scene.initialize(bearer(again.key))).status).toBe(200);
  });

  it('the end of a key ends its streams, while sessions go on with another key', async () => {
    const { id, key } = await scene.newKey();
    const session = await scene.session(key);
    const stream = await session.listen();
    const listening = await scene.modern(key).listen({ toolsListChanged: true });
    const rotated = await scene.done<{ key: string }>(`POST /keys/${id}/rotate`, { overlap_ms: 300 });
    // The overlap is over when they end.
    await Promise.all([stream.ended, listening.stream.ended]);
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    expect((await session.post(ping)).status).toBe(401);
    expect((await session.post(ping, bearer(rotated.key))).status).toBe(200);
    expect((await scene.initialize(bearer(key))).text).toContain('expired');
  });

  it.each(['x-forwarded-for', 'forwarded', 'x-real-ip', 'via', 'x-forwarded-host'])(
    'the token of this machine does not work through a proxy (%s), and the attempt is audited',
    async (header) => {
      const { authorization } = await scene.localHeaders();
      expect((await scene.initialize({ authorization })).status).toBe(200);
      const answer = await scene.initialize({ authorization, [header]: 'for=127.0.0.1' });
      expect(answer.status).toBe(401);
      await scene.audited(
        'action=authenticate',
        ({ subject }) => subject?.includes('token from elsewhere') === true,
      );
    },
  );

  it('a forwarded address from an untrusted client changes nothing', async () => {
    const { id, key } = await scene.newKey({ role: 'viewer' });
    const spoofed = { 'x-forwarded-for': '203.0.113.7', forwarded: 'for=203.0.113.7' };
    await exchange(`${scene.switchboard.baseUrl}/api/v1/projects/default/secrets`, {
      method: 'GET',
      headers: { ...bearer(key), ...spoofed },
    });
    const entry = await scene.audited(`principal=${id}`, ({ outcome }) => outcome === 'denied');
    expect(entry.address).toBe('127.0.0.1');
  });

  it('health needs no key, and says nothing', async () => {
    const answer = await exchange(`${scene.switchboard.baseUrl}/healthz`, { method: 'GET' });
    expect([answer.status, answer.text]).toEqual([200, '{"status":"ok"}']);
  });

  it('the texts of keys are nowhere but in the response that shows them', async () => {
    const { key } = await scene.newKey();
    await (await scene.session(key)).call('list_repos');
    await scene.initialize(bearer(`${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}`));
    const secret = key.slice(16);
    for (const path of ['/keys', '/audit?limit=500', '/projects/default/calls'])
      expect((await scene.ask(`GET ${path}`)).text).not.toContain(secret);
    expect(JSON.stringify(scene.switchboard.events)).not.toContain(secret);
  });
});

describe('the comparison of keys', () => {
  it('takes no longer for a key with more right characters', async () => {
    await using scene = await AccessScene.start({ servers: {} });
    const { key } = await scene.newKey();
    const wrongAt = (index: number) =>
      key.slice(0, index) + (key[index] === 'A' ? 'B' : 'A') + key.slice(index + 1);
    const candidates = { early: wrongAt(17), late: wrongAt(key.length - 1) };
    const times = { early: [] as number[], late: [] as number[] };
    for (let round = 0; round < 150; round++) {
      for (const which of round % 2 === 0 ? (['early', 'late'] as const) : (['late', 'early'] as const)) {
        const startedAt = process.hrtime.bigint();
        const { status } = await scene.initialize(bearer(candidates[which]));
        times[which].push(Number(process.hrtime.bigint() - startedAt));
        expect(status).toBe(401);
      }
    }
    // The digest of the whole key is compared, so a difference would be a thousand times larger than noise between medians.
    const median = (values: number[]) => values.toSorted((one, other) => one - other)[values.length >> 1]!;
    const [early, late] = [median(times.early), median(times.late)];
    expect(Math.abs(early - late) / Math.min(early, late)).toBeLessThan(0.5);
  });
});
