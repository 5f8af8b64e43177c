import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { type Peer, serveHttp } from '../../test/helpers/http-exchange.ts';
import { Inbox } from '../../test/helpers/inbox.ts';
import { EventStream, exchange, openExchange } from '../../test/helpers/raw-http.ts';
import { serverView } from '../../test/helpers/server-view.ts';
import { createApi } from './api.ts';
import type { ServerDirectory, ServerEvent } from './servers.ts';

const path = '/api/v1/projects/default/events';

/** Servers whose transitions are made by the test. */
class Directory implements ServerDirectory {
  readonly listeners = new Set<(event: ServerEvent) => void>();
  readonly left = new Inbox<string>();

  servers() {
    return [serverView()];
  }

  log() {
    return [];
  }

  subscribe(listener: (event: ServerEvent) => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
      this.left.add('left');
    };
  }

  change(error: string | null = null): void {
    const server = serverView({ state: 'failed', error });
    const event: ServerEvent = { time: server.since, server, replica: null, from: 'ready' };
    for (const tell of this.listeners) tell(event);
  }
}

// Only what repeats is simulated: connections live in real time.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

async function serve() {
  const directory = new Directory();
  const api = createApi(directory);
  const peer = await serveHttp(api.handle);
  return { directory, api, peer };
}

async function read({ url }: Peer): Promise<EventStream> {
  const stream = new EventStream(await openExchange(new URL(path, url).href, { method: 'GET' }));
  await stream.events.first(({ event }) => event === 'servers');
  return stream;
}

it('says how things stand, then every transition, to every reader', async () => {
  const { directory, peer } = await serve();
  const readers = [await read(peer), await read(peer)];
  directory.change('it exited');
  for (const { response, events } of readers) {
    expect(response.headers).toMatchObject({ 'content-type': 'text/event-stream' });
    const { data } = await events.first(({ event }) => event === 'server');
    expect(JSON.parse(data!)).toMatchObject({ from: 'ready', server: { error: 'it exited' } });
    expect(JSON.parse(events.items[0]!.data!)).toEqual({ servers: directory.servers() });
  }
  expect(directory.listeners.size).toBe(1);
});

it('writes a comment every 15 seconds', async () => {
  const { peer } = await serve();
  const { events } = await read(peer);
  vi.advanceTimersByTime(14_999);
  vi.advanceTimersByTime(1);
  vi.advanceTimersByTime(15_000);
  const isComment = ({ event }: { event?: string }) => event === undefined;
  expect(await events.several(2, isComment)).toHaveLength(2);
  expect(events.items).toHaveLength(3);
});

it('keeps nothing for readers that are gone', async () => {
  const { directory, peer } = await serve();
  const [first, second] = [await read(peer), await read(peer)];
  await first.cut();
  directory.change();
  await second.events.first(({ event }) => event === 'server');
  await second.cut();
  await directory.left.first(() => true);
  expect(directory.listeners.size).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});

it('cuts off a reader that does not read, and nobody else', async () => {
  const { directory, peer } = await serve();
  const idler = connect(Number(peer.url.port), '127.0.0.1').pause();
  onTestFinished(() => void idler.destroy());
  idler.on('error', () => {});
  idler.write(`GET ${path} HTTP/1.1\r\nhost: ${peer.url.host}\r\n\r\n`);
  const atServer = await peer.sockets.first(() => true);
  const { events } = await read(peer);
  const cut = once(atServer, 'close');
  const text = 'x'.repeat(100_000);
  let changes = 0;
  while (!atServer.destroyed) {
    directory.change(text);
    changes++;
    expect(atServer.writableLength).toBeLessThan(1024 * 1024 + 3 * text.length);
    await events.several(changes, ({ event }) => event === 'server');
  }
  await cut;
  directory.change();
  await events.several(changes + 1, ({ event }) => event === 'server');
});

it('ends its streams when it is closed, and those that come later', async () => {
  const { directory, api, peer } = await serve();
  const reader = await read(peer);
  api.close();
  await reader.ended;
  expect(reader.response.complete).toBe(true);
  expect(directory.listeners.size).toBe(0);
  const late = await exchange(new URL(path, peer.url).href, { method: 'GET' });
  expect(late.text).toMatch(/^event: servers\n/);
});

it.each([
  ['/api/v1/projects/default/servers/%E0%A4%A', 404],
  ['/api/v1/projects/default/nothing', 404],
  ['/api/v1/events', 404],
])('%s is answered with %d', async (address, status) => {
  const { peer } = await serve();
  expect((await exchange(new URL(address, peer.url).href, { method: 'GET' })).status).toBe(status);
});
