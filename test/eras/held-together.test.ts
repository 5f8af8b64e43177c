import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fixtureServer } from '../helpers/servers.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { accept, askedBy, comeBack, textIn } from './asked.ts';
import { StatelessClient } from './stateless-client.ts';

describe.each<[string, Record<string, string>]>([
  ['does not name its session', {}],
  ['names its session', { 'x-switchboard-session': 'mine' }],
])('two calls at the same time of a client that %s, at a legacy server over stdio', (_what, headers) => {
  let switchboard: RunningSwitchboard;
  let client: StatelessClient;

  beforeAll(async () => {
    switchboard = await startSwitchboard(
      { mcpServers: { asker: fixtureServer('eras/questioning') }, switchboard: { timeoutMs: 5_000 } },
      { database: 'none' },
    );
    client = new StatelessClient(switchboard.url, { capabilities: { elicitation: {} }, headers });
  });
  afterAll(() => switchboard?.stop());

  it('may both ask', async () => {
    const first = askedBy(await client.call('ask', { key: 'first' }));
    const second = askedBy(await client.call('ask', { key: 'second' }));
    expect(textIn(await client.call('ask', { key: 'second' }, comeBack(second, accept('Two'))))).toContain(
      'Two',
    );
    expect(textIn(await client.call('ask', { key: 'first' }, comeBack(first, accept('One'))))).toContain(
      'One',
    );
  });

  it('are each asked its own', async () => {
    const first = askedBy(await client.call('ask_in_turn', { key: 'turn' }));
    const second = askedBy(await client.call('ask', { key: 'other' }));
    const again = askedBy(await client.call('ask_in_turn', { key: 'turn' }, comeBack(first)));
    expect(Object.values(again.inputRequests)[0]?.params.message).toBe('What about turn, second?');
    await client.call('ask_in_turn', { key: 'turn' }, comeBack(again));
    expect(textIn(await client.call('ask', { key: 'other' }, comeBack(second)))).toContain('Ada');
  });
});
