import { beforeEach, describe, expect, it } from 'vitest';
import { type ConnectedClient, connectHttp, connectSse, textOf } from '../helpers/clients.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { type Sighting, Witness } from '../helpers/witness.ts';

describe('messages other than requests and responses', () => {
  let witness: Witness;
  let switchboard: RunningSwitchboard;
  let one: ConnectedClient;
  let other: ConnectedClient;

  setUp(async (use) => {
    witness = use(await Witness.open());
    switchboard = use(
      await startSwitchboard({
        recorder: fixtureServer('reports-messages', witness.env('recorder')),
      }),
    );
  });
  beforeEach(async () => {
    one = await connectHttp(switchboard.url);
    other = await connectSse(`${switchboard.baseUrl}/sse`);
    return async () => {
      await one[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
    };
  });

  const logged = ({ notifications }: ConnectedClient) =>
    notifications.items
      .filter(({ method }) => method === 'notifications/message')
      .map(({ params }) => params?.data);
  const say = ({ client }: ConnectedClient, level: string, data: string) =>
    client.callTool({ name: 'say', arguments: { level, data } });
  const messages = (method: string) =>
    witness.seenBy('recorder', 'message').filter((sighting) => sighting.method === method);

  it('log messages arrive at the level of each client, and only at the client of the call', async () => {
    await one.client.setLoggingLevel('error');
    await other.client.setLoggingLevel('debug');
    await say(one, 'info', 'too quiet for one');
    await say(one, 'error', 'loud enough for one');
    await say(other, 'debug', 'of other');
    // They come before the responses, on the same streams.
    expect(logged(one)).toEqual(['loud enough for one']);
    expect(logged(other)).toEqual(['of other']);
  });

  it('the server gets the most verbose log level of all clients', async () => {
    await say(one, 'info', 'the server is there');
    const asked = (level: string) =>
      witness.sightings.next(
        ({ method, params }) =>
          method === 'logging/setLevel' && (params as { level: string }).level === level,
      );
    const fromOne = asked('warning');
    await one.client.setLoggingLevel('warning');
    await fromOne;
    const fromOther = asked('info');
    await other.client.setLoggingLevel('info');
    await fromOther;
    const withoutOther = asked('warning');
    await other.client.close();
    await withoutOther;
  });

  it('a cancellation reaches the server for its own call only, even with equal ids', async () => {
    const hold = ({ client }: ConnectedClient, signal?: AbortSignal) => {
      const call = { name: 'hold', arguments: { order: 'release' } };
      return client.callTool(call, undefined, signal === undefined ? {} : { signal });
    };
    const arrival = () => witness.sightings.next(({ method }) => method === 'tools/call');
    const patience = new AbortController();
    let arrived = arrival();
    const cancelled = hold(one, patience.signal).catch((error: unknown) => error);
    const first = await arrived;
    arrived = arrival();
    const kept = hold(other);
    const second = await arrived;

    const noticed = witness.sightings.next(({ method }) => method === 'notifications/cancelled');
    patience.abort('not needed any more');
    expect((await noticed).params).toEqual({ requestId: first.id, reason: 'not needed any more' });
    expect(await cancelled).toBeInstanceOf(Error);

    witness.tell('recorder', 'release');
    expect(textOf(await kept)).toContain('pid');
    const wrong = messages('notifications/cancelled').filter(
      ({ params }) => (params as { requestId: unknown }).requestId === second.id,
    );
    expect(wrong).toEqual([]);
  });

  it.each(['streamable HTTP', 'SSE'])(
    'the calls of a client over %s that disconnects are cancelled',
    async (over) => {
      const leaving = over === 'SSE' ? other : one;
      const arrived = witness.sightings.next(({ method }) => method === 'tools/call');
      const call = leaving.client
        .callTool({ name: 'hold', arguments: { order: 'never' } })
        .catch((error: unknown) => error);
      const { id } = await arrived;
      const noticed = witness.sightings.next(({ method }) => method === 'notifications/cancelled');
      await leaving[Symbol.asyncDispose]();
      expect((await noticed).params).toMatchObject({ requestId: id });
      expect(await call).toBeInstanceOf(Error);
    },
  );
});

it('a log level is sent only if it changes the level of the server', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard(
    {
      shared: fixtureServer('toolbox', witness.env('shared')),
      own: { ...fixtureServer('toolbox', witness.env('own')), isolation: 'session' },
    },
    { naming: 'always' },
  );
  const open = () => RawSession.open(switchboard.url);
  const [talkative, quiet, silent] = [await open(), await open(), await open()];
  const pids = await Promise.all([talkative, quiet].map((session) => session.callText('own__pid')));
  await silent.callText('shared__pid');
  const wants = (session: RawSession, level: string) => session.request('logging/setLevel', { level });
  const levelsOf = async (count: number, fits: (sighting: Sighting) => boolean) => {
    const isLevel = (sighting: Sighting) => sighting.saw === 'logging/setLevel' && fits(sighting);
    await witness.sightings.several(count, isLevel);
    return witness.sightings.items.filter(isLevel).map(({ params }) => (params as { level: string }).level);
  };
  await wants(talkative, 'debug');
  await wants(quiet, 'error');
  await wants(quiet, 'error');
  await wants(quiet, 'critical');
  expect(await levelsOf(1, ({ pid }) => String(pid) === pids[0])).toEqual(['debug']);
  expect(await levelsOf(2, ({ pid }) => String(pid) === pids[1])).toEqual(['error', 'critical']);

  await silent.end();
  await talkative.end();
  await quiet.end();
  await wants(await open(), 'info');
  expect(await levelsOf(3, ({ who }) => who === 'shared')).toEqual(['debug', 'critical', 'info']);
});
