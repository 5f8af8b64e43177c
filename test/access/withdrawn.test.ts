import { request as openRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { bothTypes } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { AccessScene, bearer } from './scene.ts';

/** Sends the head and the first byte at once, and the rest later. */
function slowPost(url: string, headers: Record<string, string>, body: object) {
  const bytes = Buffer.from(JSON.stringify(body));
  const request = openRequest(url, {
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/json',
      accept: bothTypes,
      'content-length': bytes.length,
      ...headers,
    },
  });
  const answer = new Promise<{ status: number | undefined; text: string }>((resolve) => {
    request.on('response', async (response) =>
      resolve({ status: response.statusCode, text: await text(response).catch(() => '') }),
    );
    // A connection that is closed is a refusal too.
    request.on('error', () => resolve({ status: undefined, text: '' }));
  });
  const begun = new Promise<void>((resolve) => request.write(bytes.subarray(0, 1), () => resolve()));
  return { begun, finish: () => request.end(bytes.subarray(1)), answer };
}

const modern = (method: string, params: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: {
    ...params,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
});
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'slow', version: '1' } },
};

describe('what was withdrawn', () => {
  let scene: AccessScene;
  setUp(async (use) => {
    const witness = { a: fixtureServer('offers-guarded-items') };
    scene = use(
      await AccessScene.start({
        servers: {
          ga: { ...witness.a, group: 'pair' },
          gb: { ...witness.a, group: 'pair' },
          tasks: fixtureServer('runs-tasks'),
          missing: { command: '/opt/private/secret-name' },
        },
      }),
    );
  });

  it.each<[string, object, Record<string, string>]>([
    ['initialize', initialize, {}],
    [
      'a modern call',
      modern('tools/call', { name: 'list_repos', arguments: {} }),
      { 'mcp-method': 'tools/call', 'mcp-name': 'list_repos', 'mcp-protocol-version': '2026-07-28' },
    ],
    [
      'a subscription',
      modern('subscriptions/listen', { notifications: { toolsListChanged: true } }),
      { 'mcp-method': 'subscriptions/listen', 'mcp-protocol-version': '2026-07-28' },
    ],
  ])('does not let %s pass whose body arrives later', async (_what, body, headers) => {
    for (const end of ['DELETE', 'rotate'] as const) {
      const { id, key } = await scene.newKey();
      const { begun, finish, answer } = slowPost(scene.url, { ...bearer(key), ...headers }, body);
      await begun;
      // The head has arrived when a later request on another connection was answered.
      await scene.done('GET /status');
      if (end === 'DELETE') await scene.done(`DELETE /keys/${id}`);
      else await scene.done(`POST /keys/${id}/rotate`, { overlap_ms: 0 });
      finish();
      expect([401, undefined], end).toContain((await answer).status);
    }
  });

  it('does not report updates below a subscription that rules deny', async () => {
    const { id, key } = await scene.newKey();
    await scene.addRule({ subject: { principal: id }, kind: 'resource', name: '*/secret/*' });
    const session = await scene.session(key);
    const stream = await session.listen();
    const subscribed = await session.request('resources/subscribe', { uri: 'resource://pair/file:///' });
    expect(subscribed.error).toBeUndefined();
    await session.call('touch');
    const { params } = await stream.message(({ method }) => method === 'notifications/resources/updated');
    expect(params?.uri).toContain('public/readme.txt');
    expect(JSON.stringify(stream.messages)).not.toContain('secret');
    await stream.cut();
  });

  it('ends a subscription to a group when one of its servers is denied', async () => {
    const { id, key } = await scene.newKey();
    const session = await scene.session(key);
    const stream = await session.listen();
    const uri = 'resource://pair/file:///public/readme.txt';
    await session.request('resources/subscribe', { uri });
    await scene.addRule({ subject: { principal: id }, kind: 'resource', server: 'gb' });
    expect((await session.request('resources/read', { uri })).error).toBeDefined();
    await session.call('touch');
    await session.call('touch');
    expect(stream.messages.filter(({ method }) => method === 'notifications/resources/updated')).toEqual([]);
    await stream.cut();
  });

  it('hides the tasks of a server that is denied', async () => {
    const { id, key } = await scene.newKey();
    const session = await scene.session(key);
    const params = { name: 'research', arguments: { topic: 'owls' }, task: {} };
    const { taskId } = (await session.request('tools/call', params)).result!.task as { taskId: string };
    expect((await session.request('tasks/get', { taskId })).error).toBeUndefined();
    await scene.addRule({ subject: { principal: id }, server: 'tasks' });
    expect((await session.request('tasks/get', { taskId })).error?.message).toBe(`Unknown task: ${taskId}`);
  });

  it('keeps nothing for requests that are refused', async () => {
    const key = await scene.addKey({ role: 'viewer' });
    const sessions = async () => (await scene.done<{ sessions: number }>('GET /status')).sessions;
    const before = await sessions();
    for (let count = 0; count < 20; count++) {
      const headers = { ...bearer(key), 'x-switchboard-session': 'one' };
      const { error } = await scene.modern(key, `/mcp/nothing${count}`).as({ headers }).request('tools/list');
      expect(error?.data?.code).toBe('unknown_project');
    }
    expect(await sessions()).toBe(before);
  });

  it('tells a viewer nothing of why servers fail', async () => {
    const session = await scene.session(await scene.addKey({ role: 'viewer' }));
    const { error } = await session.call('missing__anything');
    expect(error?.data?.code).toBe('forbidden');
    expect(JSON.stringify(error)).not.toContain('private');
  });
});
