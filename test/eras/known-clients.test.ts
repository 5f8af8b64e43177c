import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { noteUri } from '../fixtures/eras/lists.ts';
import { exchange } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { RawModern } from './raw-modern.ts';

describe('a client that names itself by X-Switchboard-Session', () => {
  const name = { 'x-switchboard-session': 'a window' };
  let witness: Witness;
  let switchboard: RunningSwitchboard;
  let client: RawModern;

  beforeEach(async () => {
    witness = await Witness.open();
    const box = { ...fixtureServer('eras/modern', witness.env('box')), isolation: 'session' };
    switchboard = await startSwitchboard({ box });
    client = new RawModern(switchboard.url, { headers: name });
  });
  afterEach(async () => {
    await switchboard?.stop();
    await witness?.[Symbol.asyncDispose]();
  });

  it('gets the changes of the instance that its calls use', async () => {
    const { stream, honoured } = await client.listen({ resourceSubscriptions: [noteUri] });
    expect(honoured).toEqual({ resourceSubscriptions: [noteUri] });
    await client.callText('touch');
    const updated = await stream.message(({ method }) => method === 'notifications/resources/updated');
    expect(updated.params).toMatchObject({ uri: noteUri });
  });

  it('ends its instance when it closes its session', async () => {
    await client.callText('grow');
    const [, own] = await witness.severalOf('box', 'start', 2);
    const goodbye = async (url: string, headers: Record<string, string> = name) =>
      (await exchange(url, { method: 'DELETE', headers })).status;
    // Neither an unknown name, nor the same name at another path.
    expect(await goodbye(switchboard.url, { 'x-switchboard-session': 'another window' })).toBe(404);
    expect(await goodbye(`${switchboard.url}/default`)).toBe(404);
    expect(await client.callText('grow')).toBe('grown_2');
    expect(await goodbye(switchboard.url)).toBe(200);
    expect(await goodbye(switchboard.url)).toBe(404);
    await witness.sees('box', 'end', ({ pid }) => pid === own!.pid);
    // A later client with that name gets a new instance.
    expect(await client.callText('grow')).toBe('grown_1');
  });
});

it('a resource may have a long URI, which is sent in a header too', async () => {
  await using switchboard = await startSwitchboard({ box: fixtureServer('eras/legacy') });
  const client = new RawModern(switchboard.url);
  await client.toolNames();
  const uri = `resource://box/test://item/${'x'.repeat(20_000)}`;
  const { result } = await client.request('resources/read', { uri });
  expect(result?.contents).toMatchObject([{ uri }]);
});
