import { describe, expect, it } from 'vitest';
import {
  EventStream,
  exchange,
  initialize,
  openExchange,
  type RawAnswer,
  type RpcMessage,
} from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

let switchboard: RunningSwitchboard;
let witness: Witness;

setUp(async (use) => {
  witness = use(await Witness.open());
  switchboard = use(
    await startSwitchboard({
      box: { ...fixtureServer('toolbox', witness.env('box')), isolation: 'session' },
    }),
  );
});

interface OpenSse {
  stream: EventStream;
  post(body: unknown): Promise<RawAnswer>;
  answer(id: unknown): Promise<RpcMessage>;
}

async function openSse(): Promise<OpenSse> {
  const headers = { accept: 'text/event-stream' };
  const stream = new EventStream(
    await openExchange(`${switchboard.baseUrl}/sse`, { method: 'GET', headers }),
  );
  const { data = '' } = await stream.events.first(({ event }) => event === 'endpoint');
  return {
    stream,
    post: (body) =>
      exchange(new URL(data, switchboard.baseUrl).href, {
        headers: { 'content-type': 'application/json' },
        body,
      }),
    answer: (id) => stream.message((message) => message.id === id),
  };
}

describe('HTTP+SSE of 2024-11-05', () => {
  it('accepts messages at the address that it names, and responds on the stream', async () => {
    const { stream, post, answer } = await openSse();
    expect(await post(initialize('2024-11-05', 'init'))).toMatchObject({ status: 202 });
    expect(await answer('init')).toMatchObject({ result: { protocolVersion: '2024-11-05' } });
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const params = { name: 'progress', arguments: { count: 1 }, _meta: { progressToken: 'p' } };
    await post({ jsonrpc: '2.0', id: 2, method: 'tools/call', params });
    expect(await answer(2)).toMatchObject({ result: { content: [{ text: 'done' }] } });
    expect(await stream.message(({ method }) => method === 'notifications/progress')).toMatchObject({
      params: { progressToken: 'p', progress: 1 },
    });
    await post({ jsonrpc: '2.0', id: 3, method: 'nonsense' });
    expect(await answer(3)).toMatchObject({ error: { code: -32601 } });
    await stream.cut();
  });

  it('ends the session with the stream', async () => {
    const { stream, post, answer } = await openSse();
    await post(initialize('2024-11-05', 0));
    await post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'pid' } });
    const { result = {} } = await answer(1);
    const pid = Number((result.content as { text: string }[])[0]!.text);
    await stream.cut();
    await witness.sees('box', 'end', (sighting) => sighting.pid === pid);
    expect((await post({ jsonrpc: '2.0', id: 2, method: 'ping' })).status).toBe(404);
  });

  it('requires initialize first', async () => {
    const { stream, post, answer } = await openSse();
    await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    expect(await answer(1)).toMatchObject({ error: { code: -32600 } });
    await stream.cut();
  });

  it('rejects invalid messages, and continues', async () => {
    const { stream, post, answer } = await openSse();
    expect(await post('{"jsonrpc"')).toMatchObject({ status: 400, json: { error: { code: -32700 } } });
    expect(await post({ hello: 'world' })).toMatchObject({ status: 400, json: { error: { code: -32600 } } });
    await post(initialize('2024-11-05', 'still'));
    expect(await answer('still')).toMatchObject({ result: {} });
    await stream.cut();
  });

  it.each([
    ['', 400],
    ['?sessionId=unknown', 404],
  ])('rejects messages to /messages%s', async (query, status) => {
    const answer = await exchange(`${switchboard.baseUrl}/messages${query}`, { body: initialize() });
    expect(answer.status).toBe(status);
  });
});
