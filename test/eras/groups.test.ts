import { describe, expect, it } from 'vitest';
import type { RpcMessage } from '../helpers/raw-http.ts';
import { allReady, nextState } from '../helpers/server-states.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { RawModern } from './raw-modern.ts';

const worker = fixtureServer('eras/binds-state-to-process');
const asked = { elicitation: {} };
const ada = { name: { action: 'accept', content: { name: 'Ada' } } };

async function beAsked(client: RawModern): Promise<string> {
  const { result } = await client.call('ask');
  expect(result).toMatchObject({
    resultType: 'input_required',
    inputRequests: { name: { method: 'elicitation/create' } },
    requestState: expect.any(String),
  });
  return String(result!.requestState);
}

function comeBack(client: RawModern, requestState: string): Promise<RpcMessage> {
  return client.call('ask', {}, { inputResponses: ada, requestState });
}

function pidIn({ result, error }: RpcMessage): number {
  if (error !== undefined) throw new Error(error.message);
  return (JSON.parse((result!.content as { text: string }[])[0]!.text) as { pid: number }).pid;
}

describe.each([
  ['replicas', { lab: { ...worker, replicas: 2 } }, { lab: 2 }],
  [
    'servers of a group',
    { one: { ...worker, group: 'lab' }, two: { ...worker, group: 'lab' } },
    { one: 1, two: 1 },
  ],
])('a client that gets an input request from two %s of the modern era', (_what, mcpServers, ready) => {
  let switchboard: RunningSwitchboard;
  let client: RawModern;
  setUp(async (use) => {
    const settings = { startup: 'parallel', backoffFirstMs: 60_000, inputWaitMs: 60_000 };
    switchboard = use(await startSwitchboard(mcpServers, settings));
    await allReady(switchboard, ready);
    client = new RawModern(switchboard.url, { capabilities: asked });
  });

  it('returns to the process that asked, even if others ask meanwhile', async () => {
    const states = [await beAsked(client), await beAsked(client), await beAsked(client)];
    const pids = [];
    for (const state of states) pids.push(pidIn(await comeBack(client, state)));
    expect(pids[0]).not.toBe(pids[1]);
    expect(pids[2]).toBe(pids[0]);
  });

  it('returns what it was asked for', async () => {
    const { result } = await comeBack(client, await beAsked(client));
    expect(JSON.parse((result!.content as { text: string }[])[0]!.text)).toMatchObject({
      inputResponses: ada,
    });
  });

  it('is rejected with a modified state', async () => {
    const state = await beAsked(client);
    const [mark, content = '', signature] = state.split('.');
    const sealed = JSON.parse(Buffer.from(content, 'base64url').toString()) as object;
    const other = Buffer.from(JSON.stringify({ ...sealed, expires: 1e15 })).toString('base64url');
    for (const forged of [
      `${mark}.${other}.${signature}`,
      `${state}x`,
      `${mark}..`,
      `${mark}.`,
      `${state}.`,
    ]) {
      const { status, message } = await client.send('tools/call', {
        name: 'ask',
        arguments: {},
        inputResponses: ada,
        requestState: forged,
      });
      expect({ status, error: message?.error }).toMatchObject({
        status: 400,
        error: { code: -32602, message: expect.stringContaining('requestState') },
      });
    }
  });

  it('is rejected with the state of another request, or of another client', async () => {
    const state = await beAsked(client);
    const more = { inputResponses: ada, requestState: state };
    const refusals = [
      await client.call('ask', { other: 'arguments' }, more),
      await client.call('whoami', {}, more),
      await new RawModern(switchboard.url, {
        capabilities: asked,
        headers: { 'x-switchboard-session': 'me' },
      }).call('ask', {}, more),
    ];
    for (const { error } of refusals)
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('belongs to another') });
    expect(pidIn(await comeBack(client, state))).toBeGreaterThan(0);
  });

  it('gets an error if the process that asked is gone', async () => {
    const pid = pidIn(await comeBack(client, await beAsked(client)));
    const again = await beAskedBy(client, pid);
    const lost = ['lab', 'one', 'two'].map((server) => nextState(switchboard, server, 'starting'));
    process.kill(pid, 'SIGKILL');
    await Promise.race(lost);
    const { error, result } = await comeBack(client, again);
    expect({ result, error }).toMatchObject({
      result: undefined,
      error: { message: expect.stringMatching(/not mine|not available|gone/) },
    });
  });
});

async function beAskedBy(client: RawModern, pid: number): Promise<string> {
  for (;;) {
    const state = await beAsked(client);
    if (pidIn(await comeBack(client, state)) === pid) return state;
  }
}
