import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { bridgeProgram } from '../helpers/bridge.ts';
import { bothTypes, exchange, initialize, RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const INSTANCES = 'dev.switchboard/instances';
const parallel = { startup: 'parallel', backoffFirstMs: 1, discoveryWaitMs: 200 };
const notes = fixtureServer('notes');

const start = (mcpServers: object, settings: object = {}) =>
  startSwitchboard(mcpServers, { ...parallel, ...settings });
const failed = (switchboard: RunningSwitchboard, server: string) =>
  switchboard.event(({ name, state }) => name === server && state === 'backing_off');

/** A proxy that supports only the legacy era. */
async function legacyOnly(target: string) {
  const server = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const body = Buffer.concat(parts);
      if (body.includes('server/discover')) {
        response.writeHead(404).end();
        return;
      }
      const { host: _, ...headers } = incoming.headers;
      const onward = request(target, { method: incoming.method, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      response.on('close', () => onward.destroy());
      onward.end(body);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe.concurrent('a server that is this Switchboard', () => {
  it.each<[string, (switchboard: RunningSwitchboard) => object]>([
    ['http', ({ url }) => ({ url })],
    ['sse', ({ baseUrl }) => ({ type: 'sse', url: `${baseUrl}/sse` })],
    ['the stdio bridge', ({ url }) => bridgeProgram(url)],
  ])('fails over %s, is not retried soon, and lists nothing', async (_, entry) => {
    await using switchboard = await start({ notes });
    await switchboard.configure({ notes, me: entry(switchboard) }, parallel);
    const { error } = await failed(switchboard, 'me');
    expect(error).toContain('Server "me" is not available: it leads back to this Switchboard');
    const session = await RawSession.open(switchboard.url);
    const names = await session.toolNames();
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => name.startsWith('me__'))).toEqual([]);
    expect(
      switchboard.events.filter(({ name, state }) => name === 'me' && state === 'starting'),
    ).toHaveLength(1);
  });

  it('fails in the legacy era too', async () => {
    await using switchboard = await start({});
    await using between = await legacyOnly(switchboard.url);
    await switchboard.configure({ me: { url: between.url } }, parallel);
    expect((await failed(switchboard, 'me')).error).toContain('leads back to this Switchboard');
  });
});

describe.concurrent('Switchboards behind Switchboards', () => {
  it('work without a loop, in both eras, whatever clients claim', async () => {
    await using last = await start({ notes });
    await using legacy = await legacyOnly(last.url);
    const servers = { modern: { url: last.url }, legacy: { url: legacy.url } };
    await using first = await start(servers, { naming: 'always', discoveryWaitMs: 60_000 });
    const headers = { 'content-type': 'application/json', accept: bothTypes };
    const answer = await exchange(first.url, { headers, body: initialize() });
    const { _meta: meta } = answer.json!.result as { _meta: object };
    const forged = initialize() as { params: object };
    const body = { ...forged, params: { ...forged.params, _meta: meta } };
    expect((await exchange(last.url, { headers, body })).status).toBe(200);
    const session = await RawSession.open(first.url);
    const names = await session.toolNames();
    expect(names).toEqual(expect.arrayContaining(['modern__touch', 'legacy__touch']));
    const { result = {} } = await session.request('tools/list', { _meta: { [INSTANCES]: true } });
    expect((result._meta as Record<string, unknown[]>)[INSTANCES]).toHaveLength(2);
  });

  it('fail if the last one leads back to the first', async () => {
    await using first = await start({ notes });
    await using second = await start({ back: { url: first.url } });
    await first.configure({ notes, second: { url: second.url } }, parallel);
    const refusals = [failed(first, 'second'), failed(second, 'back')];
    for (const refusal of refusals) refusal.catch(() => {});
    const { error } = await Promise.race(refusals);
    expect(error).toContain('leads back to this Switchboard');
  });

  it('work again once the loop is removed on the other side', async () => {
    await using first = await start({ notes }, { backoffMaxMs: 100 });
    await using second = await start({ back: { url: first.url }, notes });
    await second.event(({ name, state }) => name === 'back' && state === 'ready');
    const settings = { ...parallel, backoffMaxMs: 100 };
    await first.configure({ notes, second: { url: second.url } }, settings);
    await failed(first, 'second');
    await second.configure({ notes }, parallel);
    await first.event(({ name, state }) => name === 'second' && state === 'ready');
    const session = await RawSession.open(first.url);
    expect(await session.toolNames()).toContain('second__touch');
  });
});
