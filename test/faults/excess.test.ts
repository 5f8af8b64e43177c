import { beforeAll, describe, expect, it } from 'vitest';
import { bothTypes, exchange, initialize, RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

let switchboard: RunningSwitchboard;
const excessive = (EXCESS: string, COUNT = '0') => fixtureServer('exceeds-limits', { EXCESS, COUNT });

setUp(async (use) => {
  switchboard = use(
    await startSwitchboard(
      {
        many: excessive('many', '25000'),
        large: excessive('large'),
        endless: excessive('endless'),
        cursor: excessive('cursor'),
        addresses: excessive('addresses'),
        talking: excessive('talking'),
        asking: excessive(''),
        notes: fixtureServer('notes'),
      },
      { naming: 'always', maxListItems: 500, discoveryWaitMs: 600_000 },
    ),
  );
});

describe('a list of a server', () => {
  let names: string[];
  const namesOf = (server: string) => names.filter((name) => name.startsWith(`${server}__`));
  const logOf = async (server: string) => {
    const url = `${switchboard.baseUrl}/api/v1/projects/default/servers/${server}/logs`;
    return (await exchange(url, { method: 'GET', headers: {} })).text;
  };
  beforeAll(async () => {
    names = await (await RawSession.open(switchboard.url)).toolNames();
  });

  it('is truncated if it has too many items, and the log says so', async () => {
    expect(namesOf('many')).toHaveLength(500);
    expect(await logOf('many')).toContain('its tools are cut at 500');
  });

  it('is truncated if its pages never end', async () => {
    expect(namesOf('endless')).toHaveLength(500);
    expect(await logOf('endless')).toContain('its tools are cut at 500');
  });

  it('drops an item that is too large, and only that one', async () => {
    expect(namesOf('large')).toEqual(['large__tool-0', 'large__tool-2']);
    expect(await logOf('large')).toContain('1 of its tools are left out');
  });

  it('is truncated if the cursor of the next page is too long', async () => {
    expect(namesOf('cursor')).toEqual(['cursor__tool-0']);
    expect(await logOf('cursor')).toContain('the cursor of the next page is longer than 65536 bytes');
  });

  it('drops a URI that is too long to request, and only that one', async () => {
    const session = await RawSession.open(switchboard.url);
    const { result = {} } = await session.request('resources/list');
    const names = (result.resources as { name: string }[]).map(({ name }) => name);
    expect(names.filter((name) => /^.:$/.test(name))).toEqual(['a:']);
    expect(await logOf('addresses')).toContain('is left out: its URI is longer than 64512 bytes');
  });
});

describe('a truncated or dropped part of a server', () => {
  beforeAll(async () => {
    await (await RawSession.open(switchboard.url)).toolNames();
  });
  const ofServer = async (path: string) => {
    const url = `${switchboard.baseUrl}/api/v1/projects/default/servers/${path}`;
    return (await exchange(url, { method: 'GET', headers: {} })).json as unknown as Record<string, unknown>;
  };

  it('is logged with the server', async () => {
    const { lines } = await ofServer('talking/logs');
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringContaining('its instructions are cut at 65536 characters'),
        expect.stringContaining('its serverInfo is left out: larger than 65536 characters'),
      ]),
    );
  });

  it.each([
    ['many', 'its tools are cut at 500: the rest is over the limits (settings maxListItems, maxListBytes)'],
    ['large', '1 of its tools are left out: larger than 1048576 bytes, or nested deeper than 500 levels'],
    ['talking', 'its instructions are cut at 65536 characters (its log has more)'],
    ['asking', null],
  ])('is shown with the server: %s', async (server, warning) => {
    expect(await ofServer(server)).toMatchObject({ state: 'ready', error: null, warning });
  });
});

describe('a client that never responds', () => {
  it('gets at most a hundred server requests from a server', async () => {
    const session = await RawSession.open(switchboard.url, '2025-11-25', { elicitation: {} });
    const [declined, why] = JSON.parse(await session.callText('asking__pester', { count: 150 }));
    expect(declined).toBe(50);
    expect(why).toContain('Too many requests wait for a response of this client');
  });
});

describe('the stored data of a client', () => {
  const headers = { 'content-type': 'application/json', accept: bothTypes };
  const open = (info: object, capabilities: object = {}) => {
    const body = initialize('2025-11-25', 0, capabilities) as { params: object };
    return exchange(switchboard.url, {
      headers,
      body: { ...body, params: { ...body.params, clientInfo: { version: '1', ...info } } },
    });
  };

  it('has limits: the client is rejected above them', async () => {
    expect((await open({ name: 'x'.repeat(2 ** 20) })).json?.error?.message).toContain(
      'initialize is larger',
    );
    const capabilities = { experimental: { x: 'x'.repeat(2 ** 16) } };
    expect((await open({ name: 'x' }, capabilities)).json?.error?.message).toContain('params.capabilities');
    expect((await open({ name: 'x'.repeat(2 ** 17) })).status).toBe(200);
  });

  it('excludes long names of clients without sessions', async () => {
    const more = { 'x-switchboard-session': 'x'.repeat(201) };
    const answer = await exchange(switchboard.url, { method: 'DELETE', headers: { ...headers, ...more } });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('X-Switchboard-Session is longer than 200 characters');
  });

  it('excludes long URIs of subscriptions', async () => {
    const session = await RawSession.open(switchboard.url);
    const uri = `resource://notes/note://todo/${'x'.repeat(9_000)}`;
    const { error } = await session.request('resources/subscribe', { uri });
    expect(error?.message).toContain('params.uri is longer than');
  });

  it('has at most a thousand subscriptions', async () => {
    const session = await RawSession.open(switchboard.url, '2025-03-26');
    const method = 'resources/subscribe';
    const uris = Array.from({ length: 1_001 }, (_, day) => `resource://notes/note://day//${day}`);
    const requests = uris.map((uri, id) => ({ jsonrpc: '2.0', id, method, params: { uri } }));
    const { text } = await session.post(requests.slice(0, 1_000));
    expect((JSON.parse(text) as RpcMessage[]).filter(({ result }) => result !== undefined)).toHaveLength(
      1_000,
    );
    const refused = await session.request(method, { uri: uris[1_000] });
    expect(refused.error?.message).toContain('A session can subscribe to at most 1000 resources');
    // Unsubscribing makes room, and repeated subscriptions take none.
    const again = () => session.request(method, { uri: uris[1_000] });
    expect((await session.request(method, { uri: uris[0] })).result).toEqual({});
    await session.request('resources/unsubscribe', { uri: uris[0] });
    expect((await again()).result).toEqual({});
  });
});
