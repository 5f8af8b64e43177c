import { describe, expect, it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { accept, askedBy, comeBack, textIn } from './asked.ts';
import { RawModern } from './raw-modern.ts';

describe('two simultaneous calls at a legacy server over stdio', () => {
  let switchboard: RunningSwitchboard;
  let client: RawModern;
  let stranger: RawModern;

  setUp(async (use) => {
    switchboard = use(
      await startSwitchboard({ asker: fixtureServer('eras/asks-client') }, { timeoutMs: 5_000 }),
    );
    const capabilities = { elicitation: {} };
    stranger = new RawModern(switchboard.url, { capabilities });
    client = stranger.as({ headers: { 'x-switchboard-session': 'mine' } });
  });

  it('may both ask if the client identifies itself as the same', async () => {
    const first = askedBy(await client.call('ask', { key: 'first' }));
    const second = askedBy(await client.call('ask', { key: 'second' }));
    expect(textIn(await client.call('ask', { key: 'second' }, comeBack(second, accept('Two'))))).toContain(
      'Two',
    );
    expect(textIn(await client.call('ask', { key: 'first' }, comeBack(first, accept('One'))))).toContain(
      'One',
    );
  });

  it('each return their own request', async () => {
    const first = askedBy(await client.call('ask_in_turn', { key: 'turn' }));
    const second = askedBy(await client.call('ask', { key: 'other' }));
    const again = askedBy(await client.call('ask_in_turn', { key: 'turn' }, comeBack(first)));
    expect(Object.values(again.inputRequests)[0]?.params.message).toBe('What about turn, second?');
    await client.call('ask_in_turn', { key: 'turn' }, comeBack(again));
    expect(textIn(await client.call('ask', { key: 'other' }, comeBack(second)))).toContain('Ada');
  });

  it('of anonymous clients are ambiguous, and no request reaches the wrong one', async () => {
    const first = askedBy(await stranger.call('ask', { key: 'first' }));
    expect(textIn(await stranger.call('ask', { key: 'second' }))).toContain(
      'not clear which client it is for',
    );
    expect(textIn(await stranger.call('ask', { key: 'first' }, comeBack(first, accept('One'))))).toContain(
      'One',
    );
  });
});
