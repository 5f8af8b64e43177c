import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { startForTests } from '../../test/helpers/api-client.ts';
import type { Peer } from '../../test/helpers/http-exchange.ts';
import { EventStream, exchange, openExchange } from '../../test/helpers/raw-http.ts';
import { serverViewsOf } from './server-view.ts';

const path = '/api/v1/projects/default/events';
const { services, serve: serveApi, newName } = await startForTests();
const { events: projectEvents } = services;
const project = services.projects.get('default');
await services.database!.store.servers.create(
  project.id,
  [
    {
      ...{ name: 'github', description: '', transport: 'http', enabled: true, settings: {} },
      config: { url: 'https://example.test' },
    },
  ],
  false,
);
await services.database!.refresher.refresh();

// Connections need real time, so only intervals are simulated.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

/** Serves a project with one server whose transitions the test makes. */
async function serve() {
  const change = (error: string | null = null) => {
    const [server] = serverViewsOf(project);
    const event = { server: { ...server!, state: 'failed' as const, error }, replica: null };
    projectEvents.serverChanged(project, { ...event, time: new Date().toISOString(), from: 'ready' });
  };
  return { ...(await serveApi()), change };
}

async function read({ url }: Peer, at = path): Promise<EventStream> {
  const stream = new EventStream(await openExchange(new URL(at, url).href, { method: 'GET' }));
  await stream.events.first(({ event }) => event === 'servers');
  return stream;
}

it('sends a snapshot, then every transition, to every reader', async () => {
  const { change, peer } = await serve();
  const readers = [await read(peer), await read(peer)];
  change('it exited');
  for (const { response, events } of readers) {
    expect(response.headers).toMatchObject({ 'content-type': 'text/event-stream' });
    const { data } = await events.first(({ event }) => event === 'server');
    expect(JSON.parse(data!)).toMatchObject({ from: 'ready', server: { error: 'it exited' } });
    expect(JSON.parse(events.items[0]!.data!)).toEqual({
      servers: serverViewsOf(project),
    });
  }
  expect(projectEvents.projectCount).toBe(1);
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

it('releases everything for readers that disconnect', async () => {
  const { change, peer } = await serve();
  const [first, second] = [await read(peer), await read(peer)];
  await first.cut();
  change();
  await second.events.first(({ event }) => event === 'server');
  await second.cut();
  await expect.poll(() => projectEvents.projectCount).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});

it('disconnects a reader that does not read, and no other', async () => {
  const { change, peer } = await serve();
  const idler = connect(Number(peer.url.port), '127.0.0.1').pause();
  onTestFinished(() => void idler.destroy());
  idler.on('error', () => {});
  await once(idler, 'connect');
  idler.write(`GET ${path} HTTP/1.1\r\nhost: ${peer.url.host}\r\n\r\n`);
  const atServer = await peer.sockets.first(({ remotePort }) => remotePort === idler.localPort);
  const { events } = await read(peer);
  const cut = once(atServer, 'close');
  const text = 'x'.repeat(100_000);
  let changes = 0;
  while (!atServer.destroyed) {
    change(text);
    changes++;
    expect(atServer.writableLength).toBeLessThan(1024 * 1024 + 3 * text.length);
    await events.several(changes, ({ event }) => event === 'server');
  }
  await cut;
  change();
  await events.several(changes + 1, ({ event }) => event === 'server');
});

it('ends open and later streams when it is closed', async () => {
  const { api, peer } = await serve();
  const reader = await read(peer);
  api.close();
  await reader.ended;
  expect(reader.response.complete).toBe(true);
  expect(projectEvents.projectCount).toBe(0);
  const late = await exchange(new URL(path, peer.url).href, { method: 'GET' });
  expect(late.text).toMatch(/^event: servers\n/);
});

it('sends the events of one project only, by name or id', async () => {
  const { change, peer, ask } = await serve();
  const name = newName();
  const { body } = await ask('POST /projects', { name });
  const [own, other] = [await read(peer), await read(peer, `/api/v1/projects/${body!.id}/events`)];
  change();
  await own.events.first(({ event }) => event === 'server');
  expect(other.events.items.map(({ event }) => event)).toEqual(['servers']);
  const alike = await read(peer, `/api/v1/projects/${name}/events`);
  expect(projectEvents.projectCount).toBe(2);
  expect(alike.events.items[0]!.data).toBe('{"servers":[]}');
});

it('ends the streams of a project that is removed', async () => {
  const { peer, ask } = await serve();
  const name = newName();
  await ask('POST /projects', { name });
  const [own, other] = [await read(peer, `/api/v1/projects/${name}/events`), await read(peer)];
  await ask(`DELETE /projects/${name}`);
  await own.ended;
  expect(own.response.complete).toBe(true);
  expect(projectEvents.projectCount).toBe(1);
  await other.cut();
});

it('includes events that happen before the response begins', async () => {
  const { change, peer } = await serve();
  const { subscribe } = projectEvents;
  const spy = vi.spyOn(projectEvents, 'subscribe').mockImplementation((...subscription) => {
    const unsubscribe = subscribe.apply(projectEvents, subscription);
    change('in between');
    return unsubscribe;
  });
  onTestFinished(() => spy.mockRestore());
  const { events } = await read(peer);
  const { data } = await events.first(({ event }) => event === 'server');
  expect(JSON.parse(data!)).toMatchObject({ server: { error: 'in between' } });
});

it('responds to HEAD without starting a stream', async () => {
  const { peer } = await serve();
  const { status, headers } = await exchange(new URL(path, peer.url).href, { method: 'HEAD' });
  expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: 'text/event-stream' });
  expect(projectEvents.projectCount).toBe(0);
});

it.each([
  ['/api/v1/projects/nobody/events', 404],
  ['/api/v1/events', 404],
])('responds to %s with %d', async (address, status) => {
  const { peer } = await serve();
  expect((await exchange(new URL(address, peer.url).href, { method: 'GET' })).status).toBe(status);
  expect(projectEvents.projectCount).toBe(0);
});
