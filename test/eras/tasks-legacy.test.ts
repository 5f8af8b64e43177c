import { expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { ModernPeer } from './modern-peer.ts';
import { begin, taskClient, taskServer } from './task-peer.ts';

it('tasks of both eras run next to each other', async () => {
  await using peer = await ModernPeer.start({ modern: taskServer('modern', 'dig') });
  await using switchboard = await startSwitchboard({
    ...peer.configuration(),
    legacy: fixtureServer('runs-tasks'),
  });
  const session = await RawSession.open(switchboard.url);
  const client = taskClient(switchboard.url);
  const taskId = await begin(client, 'dig');
  const research = { name: 'research', arguments: { topic: 'whales' }, task: { ttl: 60_000 } };
  expect(await session.request('tools/call', research)).toMatchObject({ result: { task: { taskId: '1' } } });
  expect(await session.request('tasks/get', { taskId: '1' })).toMatchObject({
    result: { taskId: '1', statusMessage: 'whales' },
  });
  expect(await client.request('tasks/get', { taskId })).toMatchObject({
    result: { statusMessage: 'modern' },
  });
  // Clients of the other era do not know either.
  expect(await session.request('tasks/get', { taskId })).toMatchObject({ error: { code: -32602 } });
  expect(await client.request('tasks/get', { taskId: '1' })).toMatchObject({ error: { code: -32602 } });
  await session.callText('finish', { topic: 'whales' });
  expect(await session.request('tasks/result', { taskId: '1' })).toMatchObject({
    result: { content: [{ type: 'text' }, { uri: 'resource://legacy/note://result' }] },
  });
});

it('a legacy client never gets a modern task', async () => {
  await using peer = await ModernPeer.start({
    careful: {
      ...taskServer('careful', 'dig'),
      answer: ({ params = {} }) => ({
        resultType: 'complete',
        content: [{ type: 'text', text: JSON.stringify(params._meta) }],
      }),
    },
  });
  await using switchboard = await startSwitchboard(peer.configuration());
  const session = await RawSession.open(switchboard.url, '2025-11-25', {
    tasks: { requests: { elicitation: { create: {} } } },
    extensions: { 'dev.example/known': { a: 1 } },
  });
  const { 'io.modelcontextprotocol/clientCapabilities': told } = JSON.parse(
    await session.callText('dig'),
  ) as Record<string, unknown>;
  expect(told).toEqual({ extensions: { 'dev.example/known': { a: 1 } } });
});
