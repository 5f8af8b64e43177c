import { bridgeProgram } from '../helpers/bridge.ts';
import { fixtureServer, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { connectPeer } from './clients.ts';
import type { Era } from './peer.ts';
import type { Scene } from './scene.ts';

/** Modern clients that start `switchboard stdio`, with a server behind it. */
export async function openBridgedScene(server: Era): Promise<Scene> {
  await using opening = new AsyncDisposableStack();
  const witness = opening.use(await Witness.open());
  const { baseUrl } = opening.use(
    await startSwitchboard({ eras: fixtureServer(`eras/${server}`, witness.env('eras')) }),
  );
  const whole = opening.move();
  return {
    clients: 'modern',
    connect: (answers) => connectPeer('modern', bridgeProgram(baseUrl), answers),
    uri: (own) => `resource://eras/${own}`,
    serverSees: (saw, key) => witness.sees('eras', saw, (sighting) => sighting.key === key),
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}
