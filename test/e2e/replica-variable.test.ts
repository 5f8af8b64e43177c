import { expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { allReady } from '../helpers/server-states.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';

it('each replica gets its number if the configuration asks for it', async () => {
  const name = `box \${SWITCHBOARD_REPLICA}`;
  await using switchboard = await startSwitchboard(
    { box: { ...fixtureServer('answers-after-cancel', { FIXTURE_NAME: name }), replicas: 3 } },
    { startup: 'parallel' },
  );
  await allReady(switchboard, { box: 3 });
  const session = await RawSession.open(switchboard.url);
  const names: string[] = [];
  for (let call = 0; call < 3; call++) {
    names.push((JSON.parse(await session.callText('whoami')) as { name: string }).name);
  }
  expect(names.toSorted()).toEqual(['box 1', 'box 2', 'box 3']);
});
