import { describe, expect, it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { askedBy, comeBack, textIn } from './asked.ts';
import { RawModern } from './raw-modern.ts';

const capabilities = { elicitation: {}, sampling: {} };

describe('a held call', () => {
  let witness: Witness;
  let switchboard: RunningSwitchboard;
  let client: RawModern;
  const sees = (who: string, saw: string, key: string) =>
    witness.sees(who, saw, (sighting) => sighting.key === key);

  setUp(async (use) => {
    witness = use(await Witness.open());
    const servers = ['asker', 'other', 'third', 'fourth', 'fifth', 'sixth'].map((name) => [
      name,
      { ...fixtureServer('eras/asks-client', witness.env(name)), concurrency: 1 },
    ]);
    switchboard = use(await startSwitchboard(Object.fromEntries(servers), { naming: 'always' }));
    client = new RawModern(switchboard.url, { capabilities });
  });

  it('is cancelled when the client closes the connection of its latest request', async () => {
    const given = { key: 'closed' };
    const asked = askedBy(await client.call('asker__ask_then_hang', given));
    const back = client.begin('tools/call', {
      name: 'asker__ask_then_hang',
      arguments: given,
      ...comeBack(asked),
    });
    await sees('asker', 'goes on', 'closed');
    back.close();
    await sees('asker', 'cancelled', 'closed');
    expect(textIn(await client.call('asker__echo', { after: 1 }))).toBe('{"after":1}');
  });

  it('stays suspended when the client returns with a request that is too large to inspect', async () => {
    const given = { key: 'patient' };
    const asked = askedBy(await client.call('fifth__ask', given));
    const { inputResponses, requestState } = comeBack(asked);
    const more = { inputResponses: { ...inputResponses, more: Array(600_000).fill(0) }, requestState };
    const { error } = await client.call('fifth__ask', given, more);
    expect(error?.message).toContain('more than 500000 values');
    expect(textIn(await client.call('fifth__ask', given, comeBack(asked)))).toContain('Ada');
  });

  it('is not suspended if it is too large to be recognized later', async () => {
    const given = { key: 'long call', more: Array(600_000).fill(0) };
    const { error } = await client.call('sixth__ask_then_hang', given);
    expect(error?.message).toContain('more than 500000 values');
    expect(textIn(await client.call('sixth__echo', { after: 3 }))).toBe('{"after":3}');
  });

  it('repeats its request after another call of its client was cancelled', async () => {
    const given = { key: 'before' };
    const known = client.as({ headers: { 'x-switchboard-session': 'known' } });
    const asked = askedBy(await known.call('third__ask_then_hang', given));
    const back = known.begin('tools/call', {
      name: 'third__ask_then_hang',
      arguments: given,
      ...comeBack(asked),
    });
    await sees('third', 'goes on', 'before');
    back.close();
    await sees('third', 'cancelled', 'before');
    const again = askedBy(await known.call('third__ask', { key: 'again' }));
    expect(textIn(await known.call('third__ask', { key: 'again' }, comeBack(again)))).toContain('Ada');
  });

  it('returns the result of a server that finished without the input', async () => {
    const given = { key: 'impatient' };
    const asked = askedBy(await client.call('other__ask_until', given));
    witness.tell('other', 'give up impatient');
    // The slot is free only after the server has responded.
    expect(textIn(await client.call('other__echo', { next: 1 }))).toBe('{"next":1}');
    expect(textIn(await client.call('other__ask_until', given, comeBack(asked)))).toBe('gave up');
  });

  it('fails with the reason if the server died meanwhile', async () => {
    const given = { key: 'mortal' };
    const asked = askedBy(await client.call('other__ask_and_die', given));
    witness.tell('other', 'die mortal');
    await witness.sees('other', 'end');
    const { error } = await client.call('other__ask_and_die', given, comeBack(asked));
    expect(error).toMatchObject({ code: -32603, message: expect.stringContaining('exited with code 3') });
    expect(error?.message).toContain('"other"');
    expect(textIn(await client.call('other__echo', { again: 1 }))).toBe('{"again":1}');
  });

  it('keeps the slot of its server, for which another call is queued', async () => {
    const asked = askedBy(await client.call('fourth__ask', { key: 'slot' }));
    const waiting = client.call('fourth__echo', { waits: 1 });
    expect(textIn(await client.call('fourth__ask', { key: 'slot' }, comeBack(asked)))).toContain('Ada');
    expect(textIn(await waiting)).toBe('{"waits":1}');
  });

  it('does not keep Switchboard from stopping, and its server is notified', async () => {
    const own = await startSwitchboard({
      stopped: fixtureServer('eras/asks-client', witness.env('stopped')),
    });
    const guest = new RawModern(own.url, { capabilities });
    askedBy(await guest.call('ask', { key: 'stop' }));
    await own.stop();
    expect(own.process.exitCode).toBe(0);
    await sees('stopped', 'cancelled', 'stop');
  });
});
