import { describe, expect, it } from 'vitest';
import { EventStream, exchange, openExchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { modernVersion, RawModern } from './raw-modern.ts';

/** Ids as JSON text. */
const ids = [
  '0',
  '-1',
  '""',
  '"listen:0"',
  '9007199254740993',
  '-9007199254740993',
  '"\\"quoted\\" ü \\u00fc 🂡"',
];

describe('the endpoint for modern requests', () => {
  let switchboard: RunningSwitchboard;
  let client: RawModern;
  const base = () => ({
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': modernVersion,
  });
  /** JSON.stringify would change the spelling of some ids. */
  const withId = (id: string, method: string, params: Record<string, unknown> = {}) => {
    const { headers, body } = client.raw(method, params, { id: 'PLACE' });
    return { headers, body: body.replace('"PLACE"', () => id) };
  };

  setUp(async (use) => {
    switchboard = use(await startSwitchboard({ headed: fixtureServer('eras/requires-headers') }));
    client = new RawModern(switchboard.url);
    await client.request('tools/list');
  });

  it.each(['GET', 'DELETE', 'PUT'])('rejects %s', async (method) => {
    const { status, headers } = await exchange(client.url, { method, headers: base() });
    expect(status).toBe(405);
    expect(headers.allow).toBe('POST');
  });

  it('rejects a batch', async () => {
    const { headers, body } = client.raw('tools/list');
    const { status, json } = await exchange(client.url, { headers, body: `[${body}]` });
    expect(status).toBe(400);
    expect(json?.error).toBeDefined();
  });

  it('rejects a response', async () => {
    const body = { jsonrpc: '2.0', id: 1, result: {} };
    expect((await exchange(client.url, { headers: base(), body })).status).toBe(400);
  });

  it('accepts a notification', async () => {
    const body = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    const { status, text } = await exchange(client.url, { headers: base(), body });
    expect([status, text]).toEqual([202, '']);
  });

  it.each([
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'tasks/result',
    'tasks/list',
    'initialize',
    'no/such',
    'constructor',
    '__proto__',
  ])('does not support %s', async (method) => {
    const { status, json } = await client.send(method, {}, { id: 'me' });
    expect(status).toBe(404);
    expect(json).toMatchObject({ id: 'me', error: { code: -32601 } });
  });

  it.each([
    ['only JSON', 'application/json', 'application/json'],
    ['only events', 'text/event-stream', 'text/event-stream'],
    ['events first', 'text/event-stream, application/json', 'text/event-stream'],
    ['anything', '*/*', 'application/json'],
    ['nothing said', undefined, 'application/json'],
  ])('answers a client that accepts %s', async (_what, accept, type) => {
    const params = { name: 'echo', arguments: { said: 1 } };
    const answer = await client.send('tools/call', params, { headers: { accept } });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe(type);
    expect(answer.text).toContain('said');
  });

  it('rejects a client that accepts neither', async () => {
    const { status } = await client.send('tools/list', {}, { headers: { accept: 'text/html' } });
    expect(status).toBe(406);
  });

  it('rejects a subscription of a client that does not accept events', async () => {
    const params = { notifications: { toolsListChanged: true } };
    const headers = { accept: 'application/json' };
    const pending = client.begin('subscriptions/listen', params, { headers });
    const { statusCode } = await pending.response;
    expect([200, 406]).toContain(statusCode);
    pending.close();
  });

  it.each(ids)('returns the id %s in a result', async (id) => {
    const { text } = await exchange(client.url, withId(id, 'tools/call', { name: 'echo', arguments: {} }));
    expect(text).toContain(`"id":${id}`);
    expect(text).toContain('"result"');
  });

  it.each(ids)('returns the id %s in an error', async (id) => {
    for (const method of ['no/such', 'tools/call']) {
      const { text } = await exchange(client.url, withId(id, method, { name: 'nowhere' }));
      expect(text).toContain(`"id":${id}`);
      expect(text).toContain('"error"');
    }
  });

  it.each(ids)('returns the id %s in a subscription', async (id) => {
    const request = withId(id, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
    const stream = new EventStream(await openExchange(client.url, request));
    const { data } = await stream.events.first(({ message }) => message !== undefined);
    expect(data).toContain(`"io.modelcontextprotocol/subscriptionId":${id}`);
    await stream.cut();
  });

  it.each(['1.5', 'null', 'true', '{}'])('rejects a request with the id %s', async (id) => {
    const { status, json } = await exchange(client.url, withId(id, 'tools/list'));
    expect(status).toBe(400);
    expect(json?.error?.code).toBe(-32600);
  });

  it('accepts two simultaneous requests with the same id', async () => {
    const params = { name: 'echo', arguments: {} };
    const answers = await Promise.all([1, 2].map(() => client.request('tools/call', params, { id: 'same' })));
    for (const { error } of answers) expect(error).toBeUndefined();
  });
});
