import { describe, expect, it } from 'vitest';
import { answerers, type Pool, startPool } from '../helpers/pool.ts';
import type { RawSession, RpcMessage } from '../helpers/raw-http.ts';
import { nextState, serverOf } from '../helpers/server-states.ts';
import { setUp } from '../helpers/set-up.ts';

function preferring(session: RawSession, labels: object): () => Promise<RpcMessage> {
  const params = {
    name: 'whoami',
    arguments: {},
    _meta: { 'dev.switchboard/prefer': { labels } },
  };
  return () => session.request('tools/call', params);
}

function preferringByHeader(session: RawSession, header: string): (index: number) => Promise<RpcMessage> {
  return async (index) => {
    const body = {
      jsonrpc: '2.0',
      id: `header ${header} ${index}`,
      method: 'tools/call',
      params: { name: 'whoami' },
    };
    return (await session.post(body, { 'x-switchboard-prefer': header })).json!;
  };
}

describe('the preference of a client', () => {
  const regions = {
    paris: { labels: { region: 'eu', tier: 'gold' } },
    berlin: { labels: { region: 'eu' } },
    oregon: { labels: { region: 'us', tier: 'gold' } },
  };
  let pool: Pool;
  let session: RawSession;

  setUp(async (use) => {
    pool = use(await startPool(regions));
    session = pool.session;
  });

  it('is respected in _meta and in the header, and rotates among the matching servers [G5]', async () => {
    const inEurope = { paris: 3, berlin: 3 };
    expect(await answerers(6, preferring(session, { region: 'eu' }))).toEqual(inEurope);
    expect(await answerers(6, preferringByHeader(session, 'region=eu'))).toEqual(inEurope);
    const both = { region: 'eu', tier: 'gold' };
    expect(await answerers(4, preferring(session, both))).toEqual({ paris: 4 });
    expect(await answerers(4, preferringByHeader(session, 'tier=gold, region=us'))).toEqual({ oregon: 4 });
    expect(await answerers(6, () => session.call('whoami'))).toEqual({ paris: 2, berlin: 2, oregon: 2 });
  });

  it('without a full match selects the best matches [G5]', async () => {
    const gold = preferring(session, { region: 'asia', tier: 'gold' });
    expect(await answerers(6, gold)).toEqual({ paris: 3, oregon: 3 });
    const oneOfThree = preferring(session, { region: 'eu', tier: 'gold', planet: 'mars' });
    expect(await answerers(4, oneOfThree)).toEqual({ paris: 4 });
  });

  it('without any match changes nothing [G5]', async () => {
    const spread = { paris: 2, berlin: 2, oregon: 2 };
    expect(await answerers(6, preferring(session, { region: 'asia' }))).toEqual(spread);
    expect(await answerers(6, preferringByHeader(session, 'planet=mars'))).toEqual(spread);
  });

  it('that is invalid is rejected with the reason [G5]', async () => {
    const { error } = await preferring(session, ['eu'])();
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('dev.switchboard/prefer') });
  });

  it('is ignored while the matching servers are unavailable, and respected once they are back [G5]', async () => {
    const { backends, switchboard } = pool;
    const european = preferring(session, { region: 'eu' });
    await backends.paris!.goAway();
    expect(await answerers(6, european)).toEqual({ berlin: 6 });
    await backends.berlin!.goAway();
    expect(await answerers(6, european)).toEqual({ oregon: 6 });
    const back = nextState(switchboard, 'berlin', 'ready');
    await backends.berlin!.comeBack();
    await back;
    expect(await answerers(6, european)).toEqual({ berlin: 6 });
  });
});

it.concurrent('calls with one preference do not shift the rotation of another [G5]', async () => {
  const [eu, us] = [{ labels: { region: 'eu' } }, { labels: { region: 'us' } }];
  await using pool = await startPool({ paris: eu, berlin: eu, oregon: us, ohio: us });
  const [european, american] = [eu, us].map(({ labels }) => preferring(pool.session, labels));
  const answered = await answerers(12, (index) => (index % 2 === 0 ? european! : american!)());
  expect(answered).toEqual({ paris: 3, berlin: 3, oregon: 3, ohio: 3 });
});

it.concurrent('a preferred server that hangs at its start delays no call that another can take [G5]', async () => {
  await using pool = await startPool(
    { paris: { labels: { region: 'eu' } }, oregon: { labels: { region: 'us' } } },
    { connectTimeoutMs: 3_600_000, timeoutMs: 3_600_000 },
  );
  const { backends, switchboard, session } = pool;
  const european = preferring(session, { region: 'eu' });
  expect(await answerers(2, european)).toEqual({ paris: 2 });
  const paris = backends.paris!;
  await paris.goAway();
  expect(await answerers(2, european)).toEqual({ oregon: 2 });
  paris.fallSilent();
  await paris.comeBack();
  await paris.ignored.first((method) => method === 'initialize');
  expect(await answerers(6, european)).toEqual({ oregon: 6 });
  expect(await serverOf(switchboard, 'paris')).toMatchObject({ state: 'starting' });

  await paris.goAway();
  paris.behave();
  const back = nextState(switchboard, 'paris', 'ready');
  await paris.comeBack();
  await back;
  expect(await answerers(2, european)).toEqual({ paris: 2 });
});
