import { startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';
import { connectPeer } from './clients.ts';
import type { Answers, Era, Peer, Target } from './peer.ts';
import { type ServerTransport, startServer } from './servers.ts';

/** Clients of one era, and their server, directly or through Switchboard. */
export interface Scene extends AsyncDisposable {
  clients: Era;
  connect(answers?: Answers): Promise<Peer>;
  uri(own: string): string;
  /** The first report of this kind for the call with this key. */
  serverSees(saw: string, key: string): Promise<unknown>;
}

export interface Cell {
  client: Era;
  server: Era;
  transport: ServerTransport;
}

const serverName = 'eras';

export function openDirectScene(cell: Cell): Promise<Scene> {
  return openScene(cell, async (target) => ({ target, uri: (own) => own }));
}

export function openSwitchboardScene(cell: Cell): Promise<Scene> {
  return openScene(cell, async (target, disposal) => {
    const { url } = disposal.use(await startSwitchboard({ [serverName]: target }));
    return { target: { url }, uri: (own) => `resource://${serverName}/${own}` };
  });
}

async function openScene(
  { client, server, transport }: Cell,
  reach: (server: Target, disposal: AsyncDisposableStack) => Promise<{ target: Target; uri: Scene['uri'] }>,
): Promise<Scene> {
  await using opening = new AsyncDisposableStack();
  const witness = opening.use(await Witness.open());
  const started = opening.use(await startServer(server, transport, witness.env(serverName)));
  const { target, uri } = await reach(started.target, opening);
  const whole = opening.move();
  return {
    clients: client,
    connect: (answers) => connectPeer(client, target, answers),
    uri,
    serverSees: (saw, key) => witness.sees(serverName, saw, (sighting) => sighting.key === key),
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}
