import { once } from 'node:events';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Notification } from '@modelcontextprotocol/sdk/types.js';
import { expect, it } from 'vitest';
import { textOf } from '../helpers/clients.ts';
import { connectTo, freshDatabase } from '../helpers/database.ts';
import { Inbox } from '../helpers/inbox.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

it('a client continues after a restart without noticing', async () => {
  await using database = await freshDatabase();
  await using witness = await Witness.open();
  const mcpServers = { notes: fixtureServer('notes', witness.env('notes')) };
  const start = () => startSwitchboard(mcpServers, {}, { database });
  let switchboard = await start();
  // The old port may be taken, so the client is pointed at the new one.
  const transport = new StreamableHTTPClientTransport(new URL(switchboard.url), {
    fetch: (url, init) => fetch(new URL(new URL(url).pathname, switchboard.baseUrl), init),
    reconnectionOptions: {
      initialReconnectionDelay: 10,
      maxReconnectionDelay: 100,
      reconnectionDelayGrowFactor: 1.1,
      maxRetries: 10_000,
    },
  });
  const client = new Client({ name: 'test-client', version: '1.0.0' });
  const notifications = new Inbox<Notification>();
  client.fallbackNotificationHandler = async (notification) => notifications.add(notification);
  await client.connect(transport as Transport);
  const uri = 'resource://notes/note://todo';
  await client.subscribeResource({ uri });
  const { sessionId } = transport;

  await switchboard.stop();
  switchboard = await start();
  const relisted = notifications.next(({ method }) => method === 'notifications/tools/list_changed');
  expect(textOf(await client.callTool({ name: 'announce', arguments: {} }))).toBe('done');
  expect(transport.sessionId).toBe(sessionId);
  await relisted;
  // Its subscriptions are restored.
  await witness.severalOf('notes', 'message', 2, ({ method }) => method === 'resources/subscribe');
  const updated = notifications.next(({ method }) => method === 'notifications/resources/updated');
  await client.callTool({ name: 'touch', arguments: { uri: 'note://todo' } });
  expect(await updated).toMatchObject({ params: { uri } });
  await client.close();
  await switchboard.stop();
});

it('a session survives a crash unless it ended before, and only on its own transport', async () => {
  await using database = await freshDatabase();
  await using connection = await connectTo(database.name);
  const servers = { notes: fixtureServer('notes') };
  const states = async () => (await connection.query('SELECT id_hash, state FROM kb.sessions')).rows;
  await using first = await startSwitchboard(servers, {}, { database });
  const kept = await RawSession.open(first.url);
  const ofProject = await RawSession.open(`${first.url}/default`);
  const ended = await RawSession.open(first.url);
  await expect.poll(states).toHaveLength(3);
  await ended.end();
  // The deletion is persisted before its response.
  expect(await states()).toHaveLength(2);
  expect(JSON.stringify(await states())).not.toContain(kept.id);
  first.process.kill('SIGKILL');
  await once(first.process, 'exit');

  await using second = await startSwitchboard(servers, {}, { database });
  const statusOf = async ({ id }: RawSession, path = '/mcp') => {
    const headers = {
      ...{ 'content-type': 'application/json', accept: 'application/json', 'mcp-session-id': id },
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    return (await fetch(second.baseUrl + path, { method: 'POST', headers, body })).status;
  };
  expect(await statusOf(ended)).toBe(404);
  expect(await statusOf(kept)).toBe(200);
  expect(await statusOf(ofProject, '/mcp/default')).toBe(200);
});

it('a persisted session expires when the session itself would', async () => {
  await using database = await freshDatabase();
  let id = '';
  {
    await using first = await startSwitchboard({}, {}, { database });
    ({ id } = await RawSession.open(first.url));
  }
  {
    await using connection = await connectTo(database.name);
    await connection.query("UPDATE kb.sessions SET seen_at = now() - interval '31 minutes'");
  }
  await using second = await startSwitchboard({}, {}, { database });
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'mcp-session-id': id };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  expect((await fetch(second.url, { method: 'POST', headers, body })).status).toBe(404);
});

it('a plain name that a session has listed means the same after a restart', async () => {
  await using database = await freshDatabase();
  const notes = (of: string) => fixtureServer('notes', { NOTES_OF: of });
  const [one, both] = [{ go: notes('go') }, { go: notes('go'), slow: notes('slow') }];
  await using connection = await connectTo(database.name);
  const kept = async () => (await connection.query('SELECT names FROM kb.former_names')).rows.length;
  const state = async () => JSON.stringify((await connection.query('SELECT state FROM kb.sessions')).rows);
  const promptOf = async (url: string, id: string) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json', 'mcp-session-id': id };
    const params = { name: 'summarize' };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'prompts/get', params });
    return (await fetch(url, { method: 'POST', headers, body })).text();
  };
  let id = '';
  {
    await using first = await startSwitchboard(one, {}, { database });
    const session = await RawSession.open(first.url);
    ({ id } = session);
    await session.request('prompts/list', {});
    await first.configure(both);
    // Listing starts the server.
    await expect.poll(() => session.toolNames()).toContain('slow__touch');
    await expect.poll(kept).toBe(1);
    await expect.poll(state).toContain('listedAt');
    first.process.kill('SIGKILL');
    await once(first.process, 'exit');
  }
  await using second = await startSwitchboard(both, {}, { database });
  expect(await promptOf(second.url, id)).toContain('Notes of go');
});
