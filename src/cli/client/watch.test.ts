import { expect, it } from 'vitest';
import { afterNoon, noon, replicaView, serverView } from '../../../test/helpers/server-view.ts';
import { watchLine } from './watch.ts';

const time = noon.toISOString();
const localTime = noon.toTimeString().slice(0, 8);

it('prints the local time, the server, its state, the reason and the next retry', () => {
  const server = serverView({ state: 'backing_off', error: 'it exited', next_try: afterNoon(4_000) });
  expect(watchLine({ time, server, replica: null, from: 'ready' }, 8, false)).toBe(
    `${localTime}  github    backing off   it exited · next try in 4 s`,
  );
});

it('prints the number of the replica if there are several', () => {
  const replicas = [replicaView(1), replicaView(2, { state: 'starting' })];
  const server = serverView({ state: 'degraded', replicas });
  expect(watchLine({ time, server, replica: 2, from: 'backing_off' }, 8, false)).toBe(
    `${localTime}  github/2  starting`,
  );
});
