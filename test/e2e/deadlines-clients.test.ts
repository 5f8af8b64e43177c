import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { connectHttp, connectSse, connectStdio, textOf } from '../helpers/clients.ts';
import { timePasses } from '../helpers/deadlines.ts';
import { mainProgram } from '../helpers/programs.ts';
import { RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const _meta = { 'dev.switchboard/timeoutMs': 300 };

describe.concurrent('a call that times out returns an error', () => {
  const startHanging = () => startSwitchboard({ box: fixtureServer('hangs-in-call') });
  const clients = {
    'streamable HTTP': ({ url }: RunningSwitchboard) => connectHttp(url),
    'HTTP+SSE': ({ baseUrl }: RunningSwitchboard) => connectSse(`${baseUrl}/sse`),
    stdio: ({ baseUrl }: RunningSwitchboard) =>
      connectStdio({ command: process.execPath, args: [mainProgram, 'stdio', '--url', baseUrl] }),
  };

  it.each(Object.entries(clients))(
    'to a client over %s, and its other calls continue',
    async (_, connect) => {
      await using switchboard = await startHanging();
      await using connected = await connect(switchboard);
      const { client } = connected;
      const other = client.callTool({ name: 'echo', arguments: { text: 'meanwhile', delayMs: 500 } });
      await expect(client.callTool({ name: 'hang', _meta })).rejects.toMatchObject({
        code: -32603,
        message: expect.stringContaining('Server "box" did not respond within'),
        data: { code: 'call_timeout', server: 'box', timeoutMs: 300 },
      });
      expect(JSON.parse(textOf(await other)).text).toBe('meanwhile');
    },
  );

  it('in a batch, next to the other responses', async () => {
    await using switchboard = await startHanging();
    const session = await RawSession.open(switchboard.url, '2025-03-26');
    const call = (id: number, params: object) => ({ jsonrpc: '2.0', id, method: 'tools/call', params });
    const { text } = await session.post([
      call(1, { name: 'hang', _meta }),
      call(2, { name: 'echo', arguments: { text: 'two' } }),
      call(3, { name: 'echo', arguments: { text: 'three' }, _meta: { 'dev.switchboard/timeoutMs': -1 } }),
    ]);
    const answers = (JSON.parse(text) as RpcMessage[]).toSorted(
      (one, other) => Number(one.id) - Number(other.id),
    );
    expect(answers).toMatchObject([
      { id: 1, error: { data: { code: 'call_timeout', timeoutMs: 300 } } },
      { id: 2, result: {} },
      { id: 3, error: { code: -32602, data: { code: 'invalid_params' } } },
    ]);
  });
});

describe.concurrent("a server that waits for the client's response", () => {
  /** A call whose server asks the client, which responds on command. */
  async function startPondering(timeoutMs: number) {
    const witness = await Witness.open();
    const switchboard = await startSwitchboard({
      box: { ...fixtureServer('asks-then-waits', witness.env('box')), timeoutMs },
      clock: fixtureServer('hangs-in-call'),
    });
    const clock = await RawSession.open(switchboard.url);
    await clock.toolNames();
    const [asked, answering] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const connected = await connectHttp(switchboard.url, { elicitation: {} }, (client) => {
      client.setRequestHandler(ElicitRequestSchema, async () => {
        asked.resolve();
        await answering.promise;
        return { action: 'decline' };
      });
    });
    const call = connected.client.callTool({ name: 'ponder' });
    await asked.promise;
    return {
      witness,
      call,
      timePasses: (milliseconds: number) => timePasses(clock, milliseconds),
      async answer() {
        answering.resolve();
        await witness.sees('box', 'answer');
      },
      async [Symbol.asyncDispose]() {
        await connected[Symbol.asyncDispose]();
        await switchboard.stop();
        await witness[Symbol.asyncDispose]();
      },
    };
  }

  it('does not time out meanwhile', async () => {
    await using started = await startPondering(1_500);
    await started.timePasses(2_000);
    started.witness.tell('box', 'answer');
    await started.answer();
    expect(textOf(await started.call)).toBe('{"action":"decline"}');
  });

  it('gets the full timeout again after the response', async () => {
    await using started = await startPondering(2_000);
    await started.timePasses(1_400);
    await started.answer();
    await started.timePasses(1_200);
    started.witness.tell('box', 'answer');
    expect(textOf(await started.call)).toBe('{"action":"decline"}');
  });

  it('times out if it then takes too long', async () => {
    await using started = await startPondering(300);
    await started.timePasses(500);
    const call = expect(started.call).rejects.toMatchObject({ data: { code: 'call_timeout' } });
    await started.answer();
    await call;
  });
});
