import { expect, it } from 'vitest';
import { bridgeProgram, startBridge } from '../helpers/bridge.ts';
import { exchange, initialize, RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const pings = (count: number) => Array.from({ length: count }, (_, id) => ({ ...ping, id }));
const notification = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/x' });

let switchboard: RunningSwitchboard;

setUp(async (use) => {
  switchboard = use(await startSwitchboard({ liar: fixtureServer('writes-given-lines') }));
});

it('a batch of a thousand pings is answered, and a larger one is rejected as a whole', async () => {
  const session = await RawSession.open(switchboard.url, '2025-03-26');
  const answered = await session.post(pings(1_000));
  expect(JSON.parse(answered.text)).toHaveLength(1_000);
  const { status, json } = await session.post(pings(1_001));
  expect(status).toBe(400);
  expect(json?.error).toMatchObject({
    code: -32600,
    message: expect.stringContaining('more than 1000 messages'),
  });
});

it('an id with very many digits is rejected, and the session continues', async () => {
  const session = await RawSession.open(switchboard.url);
  const body = `{"jsonrpc":"2.0","id":${'7'.repeat(100_000)},"method":"ping"}`;
  const { status, json } = await exchange(switchboard.url, { headers: session.headers(), body });
  expect(status).toBe(400);
  expect(json?.error?.message).toBe('The id is longer than 1024 bytes.');
  expect((await session.request('ping')).result).toEqual({});
});

it('stdio rejects both', async () => {
  await using bridge = startBridge(bridgeProgram(switchboard.url));
  bridge.say(initialize('2025-03-26', 0));
  await bridge.answerTo(0);
  bridge.sayLine(JSON.stringify(pings(1_001)));
  bridge.sayLine(`{"jsonrpc":"2.0","id":${'7'.repeat(2_000)},"method":"ping"}`);
  bridge.say({ id: 'after', method: 'ping' });
  await bridge.answerTo('after');
  const refused = bridge.received.items.filter(({ error }) => error !== undefined);
  expect(refused.map(({ error }) => error!.message)).toEqual([
    'The message is not a JSON object.',
    'The id is longer than 1024 bytes.',
  ]);
});

it('the limits apply to servers too, and the server continues', async () => {
  const session = await RawSession.open(switchboard.url);
  const batch = `[${Array.from({ length: 1_001 }, () => notification).join()}]`;
  const long = '7'.repeat(2_000);
  const lines = [
    batch,
    `{"jsonrpc":"2.0","id":${long},"result":{}}`,
    `{"jsonrpc":"2.0","id":"${long}","method":"ping"}`,
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${long},"progress":1}}`,
  ];
  expect(await session.callText('lie', { lines })).toBe('the truth');
  const answer = await fetch(`${switchboard.baseUrl}/api/v1/projects/default/servers/liar/logs`);
  const { lines: logged } = (await answer.json()) as { lines: string[] };
  const skipped = logged.filter((line) => line.includes('skipped an invalid message'));
  expect(skipped.map((line) => line.replace(/^.*skipped an invalid message: /, ''))).toEqual([
    'The batch has more than 1000 messages: send several smaller ones.',
    'The id is longer than 1024 bytes.',
    'The id is longer than 1024 bytes.',
    'The progressToken is longer than 1024 bytes.',
  ]);
});
