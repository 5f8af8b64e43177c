import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { connectModern } from '../eras/modern-client.ts';
import { RawModern } from '../eras/raw-modern.ts';
import { makeAuthority } from '../helpers/authority.ts';
import { temporaryFolder } from '../helpers/cli.ts';
import { type ConnectedClient, connectHttp, connectSse, textOf, toolNamesOnce } from '../helpers/clients.ts';
import { freePort } from '../helpers/free-port.ts';
import { findPart, requirePart } from '../helpers/parts.ts';
import { exchange, initialize, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { type ProxyName, startTlsProxy } from '../helpers/tls-proxy.ts';
import { trust } from '../helpers/trust.ts';
import { addKey, tokenHeader } from '../helpers/with-key.ts';
import { Witness } from '../helpers/witness.ts';

const LARGE = 5 * 1024 * 1024;
/** Longer than the time after which proxies give up by default. */
const SILENCE_MS = 70_000;
/** All of 127.0.0.0/8 is this machine: clients that are not the proxy. */
const CLIENT = '127.0.0.7';
const INVENTED = '203.0.113.9';

const json = { 'content-type': 'application/json' };
const whoami = '/api/v1/whoami';

interface Scene extends AsyncDisposable {
  switchboard: RunningSwitchboard;
  /** The address that clients use, without a path. */
  origin: string;
  plainOrigin: string;
  key: { authorization: string };
  witness: Witness;
}

async function openScene(name: ProxyName, command: string, settings: object = {}): Promise<Scene> {
  await using resources = new AsyncDisposableStack();
  const folder = resources.use(await temporaryFolder()).path;
  const { authority, cert, key } = makeAuthority(folder);
  resources.use(trust(authority));
  const witness = resources.use(await Witness.open());
  const [port, plainPort] = [await freePort(), await freePort()];
  const origin = `https://localhost:${port}`;
  const switchboard = resources.use(
    await startSwitchboard({ box: fixtureServer('toolbox', witness.env('box')) }, settings, {
      args: ['--public-url', origin, '--trusted-proxy', '127.0.0.1'],
      database: 'shared',
    }),
  );
  const target = Number(new URL(switchboard.baseUrl).port);
  resources.use(await startTlsProxy(name, command, { folder, port, plainPort, target, cert, key }));
  const added = await addKey(switchboard, { name: 'far', role: 'admin' });
  const all = resources.move();
  return {
    ...{ switchboard, origin, witness },
    plainOrigin: `http://localhost:${plainPort}`,
    key: { authorization: `Bearer ${added}` },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** From an address that is not that of the proxy. */
async function askFrom(
  localAddress: string,
  origin: string,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const { port, host } = new URL(origin);
  const asked = request({
    ...{ host: '127.0.0.1', servername: 'localhost', port, path, localAddress, agent: false },
    headers: { ...headers, host },
  }).end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const body = JSON.parse(await text(response)) as Record<string, unknown>;
  return { status: response.statusCode!, body };
}

interface Entry {
  actor: { name: string };
  address: string | null;
  action: string;
  outcome: string;
}

/** Of the audit log, newest first. Denials are written a moment later. */
async function entryOf(scene: Scene, fits: (entry: Entry) => boolean): Promise<Entry> {
  const headers = await tokenHeader(scene.switchboard.home);
  for (;;) {
    const answer = await exchange(`${scene.switchboard.baseUrl}/api/v1/audit`, { method: 'GET', headers });
    const found = (answer.json as unknown as { entries: Entry[] }).entries.find(fits);
    if (found !== undefined) return found;
    await delay(50);
  }
}

describe.each(['nginx', 'caddy'] as const)('behind %s, with the example of deploy/', (name) => {
  const part = findPart(name);
  let scene: Scene;

  beforeEach((test) => void requirePart(name, test));

  setUp(async (use) => {
    if ('command' in part) scene = use(await openScene(name, part.command));
  });

  const connectLegacy = () => connectHttp(`${scene.origin}/mcp`, {}, undefined, scene.key);

  async function expectCallsWork(connected: ConnectedClient, added: string): Promise<void> {
    const { client } = connected;
    const call = { name: 'wait', arguments: { order: added } };
    // The call ends after its progress has arrived.
    const onprogress = () => scene.witness.tell('box', added);
    expect(textOf(await client.callTool(call, undefined, { onprogress }))).toBe('waited');
    await client.callTool({ name: 'add', arguments: { name: added } });
    expect(await toolNamesOnce(connected, (names) => names.includes(added))).toContain('echo');
    const large = await client.callTool({ name: 'echo', arguments: { text: 'x'.repeat(LARGE) } });
    expect(textOf(large)).toHaveLength(LARGE);
  }

  it('a client of streamable HTTP lists, calls, and gets progress, changes and large results', async () => {
    await using connected = await connectLegacy();
    await expectCallsWork(connected, 'added-over-http');
  });

  it('a client of HTTP+SSE (2024-11-05) does the same', async () => {
    await using connected = await connectSse(`${scene.origin}/sse`, {}, undefined, scene.key);
    await expectCallsWork(connected, 'added-over-sse');
  });

  it('a client of 2026-07-28 does the same', async () => {
    await using peer = await connectModern({ url: `${scene.origin}/mcp`, headers: scene.key }, {});
    await peer.follow();
    await peer.callTool('add', { name: 'added-over-modern' });
    await peer.received.first(({ method }) => method === 'notifications/tools/list_changed');
    expect(await peer.toolNames()).toContain('added-over-modern');
    const { content } = await peer.callTool('echo', { text: 'x'.repeat(LARGE) });
    expect(content[0]!.text).toHaveLength(LARGE);
  });

  it('each event arrives at once, while the call goes on', async () => {
    const session = await RawSession.open(`${scene.origin}/mcp`, undefined, {}, scene.key);
    const stream = await session.openCall('wait', { order: 'on' }, 'token');
    await stream.message(({ method }) => method === 'notifications/progress');
    scene.witness.tell('box', 'on');
    await stream.message(({ result }) => result !== undefined);
    await session.end();
  });

  it('a client that disconnects cancels its call', async () => {
    const client = new RawModern(`${scene.origin}/mcp`, { headers: scene.key });
    const saw = (what: string) => scene.witness.sightings.next((sighting) => sighting.saw === what);
    const [waiting, cancelled] = [saw('waiting'), saw('notifications/cancelled')];
    const call = client.begin('tools/call', { name: 'wait', arguments: { order: 'never' } });
    await waiting;
    call.close();
    await cancelled;
  });

  it('long headers arrive, as for the names of resources', async () => {
    const client = new RawModern(`${scene.origin}/mcp`, { headers: scene.key });
    const uri = `file:///${'x'.repeat(30_000)}`;
    const { error } = await client.request('resources/read', { uri });
    expect(error!.message).toContain('xxx');
  });

  it('a client without a key, or with another one, is refused', async () => {
    const wrong = { authorization: `${scene.key.authorization}x` };
    for (const given of [{}, wrong]) {
      for (const body of [initialize(), { large: 'x'.repeat(LARGE) }]) {
        const answer = await exchange(`${scene.origin}/mcp`, { headers: { ...json, ...given }, body });
        expect(answer).toMatchObject({
          status: 401,
          headers: { 'www-authenticate': expect.stringMatching(/^Bearer/) },
          json: { error: { data: { code: 'unauthorized' } } },
        });
      }
    }
  });

  it('the token of the machine does not count', async () => {
    const token = await tokenHeader(scene.switchboard.home);
    expect((await exchange(scene.origin + whoami, { method: 'GET', headers: token })).status).toBe(401);
    const direct = await exchange(scene.switchboard.baseUrl + whoami, { method: 'GET', headers: token });
    expect(direct.status).toBe(200);
  });

  it('health checks need no key', async () => {
    expect((await exchange(`${scene.origin}/readyz`, { method: 'GET' })).status).toBe(200);
  });

  it('requests without TLS are refused, not redirected', async () => {
    const answer = await exchange(`${scene.plainOrigin}/mcp`, { headers: scene.key, body: initialize() });
    expect(answer).toMatchObject({ status: 403, text: expect.stringMatching(/https/) });
  });

  it('the address of the client is known, whatever it says itself', async () => {
    const inventions: Record<string, string>[] = [
      {},
      { 'x-forwarded-for': INVENTED },
      { 'x-forwarded-for': `${INVENTED}, 127.0.0.1` },
      { forwarded: `for=${INVENTED}`, 'x-real-ip': INVENTED },
      { connection: 'close, x-forwarded-for', 'x-forwarded-for': INVENTED },
    ];
    for (const invented of inventions) {
      const { status, body } = await askFrom(CLIENT, scene.origin, whoami, { ...scene.key, ...invented });
      expect(status).toBe(200);
      expect(body).toMatchObject({ name: 'far', address: CLIENT });
    }
  });

  it('the address of the client is in the audit log, of changes and of refusals', async () => {
    const forged = { 'x-forwarded-for': INVENTED };
    await askFrom('127.0.0.8', scene.origin, whoami, { ...forged, authorization: 'Bearer wrong' });
    const refused = await entryOf(
      scene,
      ({ outcome, address }) => outcome === 'refused' && address === '127.0.0.8',
    );
    expect(refused.action).toBe('authenticate');
    const created = await exchange(`${scene.origin}/api/v1/projects`, {
      headers: { ...json, ...forged, ...scene.key },
      body: { name: 'made-from-afar' },
    });
    expect(created.status).toBe(201);
    const entry = await entryOf(scene, ({ action }) => action === 'project.create');
    expect(entry).toMatchObject({
      actor: { name: 'far' },
      address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
    });
  });

  const onlyCaddy = name === 'caddy' ? it : () => {};
  onlyCaddy('HTTP/2 is offered', async () => {
    const session = connectHttp2(scene.origin);
    const stream = session.request({ ':path': whoami, ...scene.key });
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    expect(headers[':status']).toBe(200);
    stream.close();
    session.close();
    await once(session, 'close');
  });

  it('streams and calls outlast a long silence, and so do the connections of the proxy', async () => {
    if (!('command' in part)) return;
    await using silent = await openScene(name, part.command, { keepAliveMs: 10 * SILENCE_MS });
    const open = () => RawSession.open(`${silent.origin}/mcp`, undefined, {}, silent.key);
    const [session, waiting] = await Promise.all([open(), open()]);
    const stream = await session.listen();
    await using sse = await connectSse(`${silent.origin}/sse`, {}, undefined, silent.key);
    const called = waiting.callText('wait', { order: 'after-silence' });
    await silent.witness.sees('box', 'waiting');
    await delay(SILENCE_MS);
    silent.witness.tell('box', 'after-silence');
    expect(await called).toBe('waited');
    const told = sse.notifications.next(({ method }) => method === 'notifications/tools/list_changed');
    // Would fail on a connection to Switchboard that it closed meanwhile.
    await Promise.all(Array.from({ length: 8 }, () => session.callText('echo', { text: 'again' })));
    await session.callText('add', { name: 'late' });
    await stream.message(({ method }) => method === 'notifications/tools/list_changed');
    await told;
    await Promise.all([session.end(), waiting.end()]);
  });
});
