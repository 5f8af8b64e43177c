import { describe, expect, it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { ModernPeer } from './modern-peer.ts';
import { RawModern } from './raw-modern.ts';
import { begin, taskClient, taskServer } from './task-peer.ts';

const methods = ['tasks/get', 'tasks/update', 'tasks/cancel'];

describe('a modern task', () => {
  let peer: ModernPeer;
  let switchboard: RunningSwitchboard;
  let client: RawModern;
  setUp(async (use) => {
    peer = use(
      await ModernPeer.start({ left: taskServer('left', 'dig'), right: taskServer('right', 'fill') }),
    );
    switchboard = use(await startSwitchboard(peer.configuration()));
    client = taskClient(switchboard.url);
  });

  it('is queried at its server, even if another has a task with the same id', async () => {
    const ids = { left: await begin(client, 'dig'), right: await begin(client, 'fill') };
    expect(ids.left).not.toBe(ids.right);
    for (const [owner, taskId] of Object.entries(ids)) {
      expect(await client.request('tasks/get', { taskId })).toMatchObject({
        result: { resultType: 'complete', taskId, status: 'working', statusMessage: owner },
      });
    }
    expect(await client.request('tasks/cancel', { taskId: ids.left })).toMatchObject({ result: {} });
    await client.request('tasks/update', {
      taskId: ids.right,
      inputResponses: { key: { action: 'accept' } },
    });
    expect(await client.request('tasks/get', { taskId: ids.left })).toMatchObject({
      result: { status: 'cancelled', statusMessage: 'left' },
    });
    expect(await client.request('tasks/get', { taskId: ids.right })).toMatchObject({
      result: { status: 'completed', statusMessage: 'right' },
    });
  });

  it("has the server's own id at the server, and in the header", async () => {
    const taskId = await begin(client, 'dig');
    for (const method of methods) await client.request(method, { taskId });
    for (const method of methods) {
      const { message, headers } = peer.seen(method).at(-1)!;
      expect(message?.params?.taskId).toMatch(/^\d+$/);
      expect(headers).toMatchObject({ 'mcp-method': method, 'mcp-name': message?.params?.taskId });
    }
  });

  it('has a result with URIs that can be read through Switchboard', async () => {
    const taskId = await begin(client, 'dig');
    await client.request('tasks/update', { taskId, inputResponses: { name: 'Ada' } });
    const { result = {} } = await client.request('tasks/get', { taskId });
    const own = (peer.seen('tasks/get').at(-1)!.message!.params as { taskId: string }).taskId;
    expect(result.result).toEqual({
      content: [
        { type: 'resource_link', uri: `resource://left/note://${own}`, name: 'note' },
        { type: 'resource', resource: { uri: 'resource://left/note://embedded', text: '{"name":"Ada"}' } },
      ],
      structuredContent: { uri: 'note://not-a-link' },
    });
  });

  const forged = (...parts: unknown[]) =>
    `sb-task.${Buffer.from(JSON.stringify(parts)).toString('base64url')}`;
  it.each([
    ['of a server', '1'],
    ['that nobody gave', 'nothing'],
    ['without content', 'sb-task.'],
    ['that is not JSON', 'sb-task.AAAA'],
    ['of a server that is not there', forged('nowhere', 'nowhere', 1, '1')],
    ['of a replica that is not there', forged('left', 'left', 2, '1')],
    ['with too few parts', forged('left')],
    ['with too many parts', forged('left', 'left', 1, '1', '1')],
    ['with an object as the own id', forged('left', 'left', 1, { a: 1 })],
    ['with nothing as the own id', forged('left', 'left', 1, null)],
    ['with a number as the own id', forged('left', 'left', 1, 1)],
  ])('is unknown under an id %s', async (_what, taskId) => {
    const before = methods.map((method) => peer.seen(method).length);
    for (const method of methods) {
      const { status, message } = await client.send(method, { taskId });
      expect({ status, error: message?.error }).toMatchObject({
        status: 400,
        error: { code: -32602, message: `Unknown task: ${taskId}` },
      });
    }
    expect(methods.map((method) => peer.seen(method).length)).toEqual(before);
  });

  it('that its server does not know returns the error of the server', async () => {
    const taskId = await begin(client, 'dig');
    const [place, server, number] = JSON.parse(
      Buffer.from(taskId.slice('sb-task.'.length), 'base64url').toString(),
    ) as unknown[];
    expect(
      await client.request('tasks/get', { taskId: forged(place, server, number, 'no such') }),
    ).toMatchObject({ error: { code: -32602, message: 'left has no task no such' } });
  });

  it.each(methods)('requires a client with task support for %s', async (method) => {
    const stranger = new RawModern(switchboard.url);
    const { status, message } = await stranger.send(method, { taskId: 'any' });
    expect({ status, error: message?.error }).toMatchObject({
      status: 400,
      error: {
        code: -32021,
        data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
      },
    });
  });

  it('must be named in the header', async () => {
    const taskId = await begin(client, 'dig');
    const { status, message } = await client.send('tasks/get', { taskId }, { headers: { 'mcp-name': '1' } });
    expect({ status, error: message?.error }).toMatchObject({ status: 400, error: { code: -32020 } });
  });
});
