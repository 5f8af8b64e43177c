import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { connectHttp } from '../helpers/clients.ts';
import { patienceMs } from '../helpers/patience.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { allReady } from '../helpers/server-states.ts';
import { fixtureServer, referenceServer, startSwitchboard } from '../helpers/switchboard.ts';

const REPLICAS = 3;

async function startTasking(timeoutMs = patienceMs) {
  const switchboard = await startSwitchboard(
    { lab: { ...fixtureServer('runs-tasks'), replicas: REPLICAS, timeoutMs } },
    { startup: 'parallel' },
  );
  await allReady(switchboard, { lab: REPLICAS });
  return switchboard;
}

const patiently = { 'dev.switchboard/timeoutMs': patienceMs };

function begin(session: RawSession, topic: string, progressToken?: string) {
  const params = { name: 'research', arguments: { topic }, task: { ttl: 60_000 } };
  return session.request('tools/call', {
    ...params,
    _meta: { ...patiently, ...(progressToken === undefined ? {} : { progressToken }) },
  });
}

/** Any of the replicas may run the task. */
async function finish(session: RawSession, topic: string): Promise<void> {
  for (let replica = 0; replica < REPLICAS; replica++) {
    await session.request('tools/call', { name: 'finish', arguments: { topic }, _meta: patiently });
  }
}

describe.concurrent('a task', () => {
  it('is queried where it started, however many replicas run', async () => {
    await using switchboard = await startTasking();
    // Each replica counts from 1, so these clients have tasks with the same id on different replicas.
    const topics = ['whales', 'wolves', 'wasps'];
    const sessions = await Promise.all(topics.map(() => RawSession.open(switchboard.url)));
    for (const [index, topic] of topics.entries()) {
      expect(await begin(sessions[index]!, topic)).toMatchObject({
        result: { task: { taskId: '1', status: 'working', statusMessage: topic } },
      });
    }
    for (const [index, topic] of topics.entries()) {
      const session = sessions[index]!;
      for (let time = 0; time < REPLICAS; time++) {
        expect(await session.request('tasks/get', { taskId: '1' })).toMatchObject({
          result: { taskId: '1', statusMessage: topic },
        });
      }
      const result = session.request('tasks/result', { taskId: '1' });
      await finish(session, topic);
      const { content } = (await result).result as { content: Record<string, unknown>[] };
      expect(content[0]?.text).toMatch(new RegExp(`^${topic} by \\d+$`));
      expect(content[1]?.uri).toBe('resource://lab/note://result');
    }
    expect(await sessions[0]!.request('tasks/cancel', { taskId: '1' })).toMatchObject({
      result: { status: 'cancelled', statusMessage: 'whales' },
    });
  });

  it('may take longer than the call timeout: its result is awaited', async () => {
    await using switchboard = await startTasking(300);
    const session = await RawSession.open(switchboard.url);
    await begin(session, 'whales');
    const result = session.request('tasks/result', { taskId: '1' });
    // A call that times out proves that the time has passed.
    const params = { name: 'finish', arguments: {}, _meta: { 'dev.switchboard/timeoutMs': 1 } };
    await session.request('tools/call', params);
    const late = await begin(session, 'never ends');
    const second = (late.result as { task: { taskId: string } }).task.taskId;
    expect(
      await session.request('tasks/result', { taskId: second, _meta: { 'dev.switchboard/timeoutMs': 400 } }),
    ).toMatchObject({ error: { data: { code: 'call_timeout' } } });
    await finish(session, 'whales');
    expect(await result).toMatchObject({ result: { content: [{ type: 'text' }, {}] } });
  });

  it('reports its status to its own client only', async () => {
    await using switchboard = await startTasking();
    const [mine, other] = [await RawSession.open(switchboard.url), await RawSession.open(switchboard.url)];
    const [stream, otherStream] = [await mine.listen(), await other.listen()];
    await begin(mine, 'whales', 'mine');
    await finish(other, 'whales');
    expect(await stream.message(({ method }) => method === 'notifications/progress')).toMatchObject({
      params: { progressToken: 'mine', message: 'whales' },
    });
    expect(await stream.message(({ method }) => method === 'notifications/tasks/status')).toMatchObject({
      params: { taskId: '1', status: 'completed' },
    });
    expect(otherStream.messages).toEqual([]);
    await Promise.all([stream.cut(), otherStream.cut()]);
  });

  it('of another client is not found', async () => {
    await using switchboard = await startTasking();
    const [mine, other] = [await RawSession.open(switchboard.url), await RawSession.open(switchboard.url)];
    await begin(mine, 'whales');
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
      expect(await other.request(method, { taskId: '1' })).toMatchObject({
        error: { code: -32602, message: 'Unknown task: 1' },
      });
    }
    expect(await mine.request('tasks/get', {})).toMatchObject({
      error: { code: -32602, message: 'params.taskId must be a string.' },
    });
  });

  it('of a reference server completes, with a server request in between', async () => {
    await using switchboard = await startSwitchboard({ everything: referenceServer('everything') });
    const capabilities = { elicitation: {}, tasks: { requests: { elicitation: { create: {} } } } };
    await using connected = await connectHttp(switchboard.url, capabilities, (client) => {
      client.setRequestHandler(ElicitRequestSchema, () => ({
        action: 'accept' as const,
        content: { interpretation: 'technical' },
      }));
    });
    const { client } = connected;
    await client.listTools();
    const seen: string[] = [];
    const call = { name: 'simulate-research-query', arguments: { topic: 'switchboards', ambiguous: true } };
    for await (const message of client.experimental.tasks.callToolStream(call, CallToolResultSchema)) {
      seen.push(message.type);
      if (message.type === 'error') throw message.error;
      if (message.type === 'result') expect(JSON.stringify(message.result)).toContain('switchboards');
    }
    expect(seen[0]).toBe('taskCreated');
    expect(seen.at(-1)).toBe('result');
  });
});
