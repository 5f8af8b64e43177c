import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { noteUri } from '../fixtures/eras/lists.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import type { Era } from './peer.ts';
import { RawModern } from './raw-modern.ts';

const ada = { action: 'accept', content: { name: 'Ada' } };

describe.each<Era>(['legacy', 'modern'])('with an instance of a %s server for each client', (era) => {
  let witness: Witness;
  let switchboard: RunningSwitchboard;
  beforeEach(async () => {
    witness = await Witness.open();
    const box = { ...fixtureServer(`eras/${era}`, witness.env('box')), isolation: 'session' };
    switchboard = await startSwitchboard({ box });
    // One process runs for discovery.
    await new RawModern(switchboard.url).toolNames();
    await witness.severalOf('box', 'start', 1);
  });
  afterEach(async () => {
    await switchboard?.stop();
    await witness?.[Symbol.asyncDispose]();
  });
  const started = () => witness.seenBy('box', 'start').map(({ pid }) => pid);

  it('a client with a name keeps one over its calls, and another has another', async () => {
    const [one, two] = ['one', 'two'].map(
      (key) => new RawModern(switchboard.url, { headers: { 'x-switchboard-session': key } }),
    ) as [RawModern, RawModern];
    const grown = [await one.callText('grow'), await one.callText('grow'), await two.callText('grow')];
    expect(grown).toEqual(['grown_1', 'grown_2', 'grown_1']);
    expect(await one.callText('grow')).toBe('grown_3');
    expect(started()).toHaveLength(3);
    expect(witness.seenBy('box', 'end')).toEqual([]);
  });

  it('an anonymous client has one per call, which exits afterwards', async () => {
    const client = new RawModern(switchboard.url);
    expect([await client.callText('grow'), await client.callText('grow')]).toEqual(['grown_1', 'grown_1']);
    await witness.severalOf('box', 'end', 2);
    const [shared, ...own] = started();
    expect(own).toHaveLength(2);
    expect(
      witness
        .seenBy('box', 'end')
        .map(({ pid }) => pid)
        .toSorted(),
    ).toEqual(own.toSorted());
    expect(witness.seenBy('box', 'end').map(({ pid }) => pid)).not.toContain(shared);
  });

  it('a call that fails leaves none behind', async () => {
    const client = new RawModern(switchboard.url);
    expect(await client.call('break')).toMatchObject({ error: { code: -32050 } });
    await witness.severalOf('box', 'end', 1);
    expect(started()).toHaveLength(2);
  });

  it('a call that is cancelled leaves none behind', async () => {
    const params = { name: 'wait', arguments: { key: 'x' } };
    const { close, response } = new RawModern(switchboard.url).begin('tools/call', params);
    await witness.sees('box', 'waiting');
    close();
    await expect(response).rejects.toThrow();
    await witness.severalOf('box', 'end', 1);
    expect(started()).toHaveLength(2);
  });

  it('a call with an input request keeps its own until the client returns', async () => {
    const client = new RawModern(switchboard.url, { capabilities: { elicitation: {} } });
    const { result } = await client.call('ask_name');
    expect(result).toMatchObject({ resultType: 'input_required' });
    const { inputRequests, requestState } = result as {
      inputRequests: Record<string, unknown>;
      requestState?: string;
    };
    const [key = ''] = Object.keys(inputRequests);
    if (era === 'legacy') expect(witness.seenBy('box', 'end')).toEqual([]);
    const text = await client.callText(
      'ask_name',
      {},
      { inputResponses: { [key]: ada }, ...(requestState !== undefined && { requestState }) },
    );
    expect(JSON.parse(text)).toEqual({ name: ada });
    const own = era === 'legacy' ? 1 : 2;
    await witness.severalOf('box', 'end', own);
    expect(started()).toHaveLength(1 + own);
  });

  it('a subscription of a client gets the changes that this client makes', async () => {
    const client = new RawModern(switchboard.url, { headers: { 'x-switchboard-session': 'me' } });
    const uri = `resource://box/${noteUri}`;
    const { stream, honoured } = await client.listen({ resourceSubscriptions: [uri] });
    expect(honoured).toEqual({ resourceSubscriptions: [uri] });
    await client.callText('touch');
    const processes = started();
    // Notifications that precede a response arrive before the subscription ends.
    await switchboard.stop();
    await stream.ended;
    expect(
      stream.messages.filter(({ method }) => method === 'notifications/resources/updated'),
    ).toMatchObject([{ params: { uri } }]);
    expect(processes).toHaveLength(2);
  });
});
