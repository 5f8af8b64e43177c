import { describe, expect, it } from 'vitest';
import { FastClient } from '../helpers/fast-client.ts';
import { HttpBackend } from '../helpers/http-backend.ts';
import { type LoadResult, load } from '../helpers/load.ts';
import { allReady, tally } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

const CALLS = 4_000;
const AT_ONCE = 32;

/** Every call succeeded, and each of four servers got an equal share, within 1 %. */
function expectEvenShares(results: readonly LoadResult[], by: 'pid' | 'name'): void {
  expect(results).toHaveLength(CALLS);
  expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
  const shares = [...tally(results.map((result) => result.by?.[by])).values()];
  expect(shares).toHaveLength(4);
  for (const share of shares) expect(Math.abs(share - CALLS / 4)).toBeLessThanOrEqual(CALLS / 4 / 100);
}

describe('4,000 calls', () => {
  it('are spread evenly over four replicas, and none is dropped [G4]', async () => {
    await using switchboard = await startSwitchboard({
      box: { ...fixtureServer('answers-after-cancel'), replicas: 4, startup: 'parallel' },
    });
    await allReady(switchboard, { box: 4 });
    await using client = await FastClient.connect(switchboard.url);
    expectEvenShares(await load(client, 'echo', AT_ONCE, (made) => made < CALLS), 'pid');
  });

  it('are spread evenly over a group of different servers, and none is dropped [G4]', async () => {
    await using streamable = await HttpBackend.start('streamable');
    await using eventful = await HttpBackend.start('eventful', { transport: 'sse' });
    const member = { group: 'pool', startup: 'parallel' };
    await using switchboard = await startSwitchboard({
      workhorse: { ...fixtureServer('answers-after-cancel'), ...member },
      hanging: { ...fixtureServer('hangs-in-call'), ...member },
      streamable: { url: streamable.url, ...member },
      eventful: { url: eventful.url, type: 'sse', ...member },
    });
    await allReady(switchboard, { workhorse: 1, hanging: 1, streamable: 1, eventful: 1 });
    await using client = await FastClient.connect(switchboard.url);
    expectEvenShares(await load(client, 'echo', AT_ONCE, (made) => made < CALLS), 'name');
  });
});
