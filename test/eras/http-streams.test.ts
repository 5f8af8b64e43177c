import { describe, expect, it } from 'vitest';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { textIn } from './asked.ts';
import { RawModern } from './raw-modern.ts';

describe('a slow modern request', () => {
  let witness: Witness;
  let switchboard: RunningSwitchboard;
  let client: RawModern;
  const request = (name: string, key: string, options: object = {}) =>
    ['tools/call', { name, arguments: { key } }, options] as const;
  const sees = (saw: string, key: string) => witness.sees('headed', saw, (sighting) => sighting.key === key);

  setUp(async (use) => {
    witness = use(await Witness.open());
    switchboard = use(
      await startSwitchboard(
        { headed: fixtureServer('eras/requires-headers', witness.env('headed')) },
        { keepAliveMs: 30 },
      ),
    );
    client = new RawModern(switchboard.url);
    await client.request('tools/list');
  });

  it('becomes a stream that is kept alive', async () => {
    const stream = await client.stream(...request('wait', 'slow', { id: 'slow' }));
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
    });
    await stream.events.several(2, ({ message }) => message === undefined);
    witness.tell('headed', 'go slow');
    const answer = await stream.message(({ id }) => id === 'slow');
    expect(textIn(answer)).toContain('slow');
    await stream.ended;
  });

  it('waits without a stream for a client that accepts none', async () => {
    const pending = client.begin(...request('wait', 'json', { headers: { accept: 'application/json' } }));
    await sees('called', 'json');
    const passing = await client.stream(...request('wait', 'passing'));
    await passing.events.several(2, ({ message }) => message === undefined);
    witness.tell('headed', 'go json');
    expect((await pending.response).headers['content-type']).toBe('application/json');
    witness.tell('headed', 'go passing');
    await passing.ended;
  });

  it('is cancelled when the connection closes before any output', async () => {
    const pending = client.begin(...request('hang', 'early'));
    await sees('called', 'early');
    pending.close();
    await sees('cancelled', 'early');
  });

  it('is cancelled when the connection closes after it became a stream', async () => {
    const stream = await client.stream(...request('hang', 'late', { meta: { progressToken: 'p' } }));
    await stream.message(({ method }) => method === 'notifications/progress');
    await stream.cut();
    await sees('cancelled', 'late');
  });

  it('is not sent if the connection closes while its server starts', async () => {
    await using own = await startSwitchboard({
      slow: fixtureServer('eras/requires-headers', witness.env('slow')),
    });
    const guest = new RawModern(own.url);
    const pending = guest.begin(...request('hang', 'never'));
    await witness.sees('slow', 'start');
    pending.close();
    expect(textIn(await guest.call('echo', { key: 'after' }))).toContain('after');
    const calls = witness.seenBy('slow', 'called').length;
    const cancellations = witness.seenBy('slow', 'cancelled').length;
    expect(calls).toBe(cancellations);
  });

  it('does not delay other responses on the same connection', async () => {
    const answers = await Promise.all([1, 2, 3].map((key) => client.call('echo', { key })));
    expect(answers.map(textIn)).toEqual(['{"key":1}', '{"key":2}', '{"key":3}']);
  });
});
