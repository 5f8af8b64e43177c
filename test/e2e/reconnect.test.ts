import { expect, it } from 'vitest';
import { RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

const LEVEL = 'logging/setLevel';
const UPDATED = 'notifications/resources/updated';
const uri = 'resource://notes/note://todo';

it('a process that starts after a client set a log level gets that level', async () => {
  await using witness = await Witness.open();
  await using switchboard = await startSwitchboard(
    {
      shared: fixtureServer('toolbox', witness.env('shared')),
      own: { ...fixtureServer('toolbox', witness.env('own')), isolation: 'session' },
    },
    { naming: 'always' },
  );
  const session = await RawSession.open(switchboard.url);
  await session.request(LEVEL, { level: 'debug' });
  const pid = Number(await session.callText('own__pid'));
  const ofOwn = await witness.sees('own', LEVEL, (sighting) => sighting.pid === pid);
  const ofShared = await witness.sees('shared', LEVEL);
  expect([ofOwn.params, ofShared.params]).toEqual([{ level: 'debug' }, { level: 'debug' }]);
});

it.each(['dies', 'is changed'])('subscriptions are restored when the server %s', async (what) => {
  await using witness = await Witness.open();
  const notes = () => fixtureServer('notes', { ...witness.env('notes'), NOTES_OF: 'all' });
  await using switchboard = await startSwitchboard({ notes: notes() });
  const session = await RawSession.open(switchboard.url);
  const stream = await session.listen();
  expect(await session.request('resources/subscribe', { uri })).toMatchObject({ result: {} });
  const { pid } = await witness.sees('notes', 'start');

  if (what === 'dies') process.kill(pid, 'SIGKILL');
  else await switchboard.configure({ notes: { ...notes(), args: [...notes().args, '--changed'] } });
  await switchboard.event(({ event, state }) => event === 'configuration' || state === 'backing_off');
  // A call restarts it; the update arrives only if the new process was subscribed.
  await session.callText('touch', { uri: 'note://done' });
  const again = await witness.sees(
    'notes',
    'message',
    (sighting) => sighting.pid !== pid && sighting.method === 'resources/subscribe',
  );
  expect(again.params).toEqual({ uri: 'note://todo' });
  await session.callText('touch', { uri: 'note://todo' });
  expect(await stream.message(({ method }) => method === UPDATED)).toMatchObject({ params: { uri } });
  await stream.cut();
});
