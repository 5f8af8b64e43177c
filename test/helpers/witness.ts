import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { Inbox } from './inbox.ts';

/** A report of a fixture process. Its exit counts too, because its connection closes. */
export interface Sighting {
  who: string;
  pid: number;
  saw: string;
  [detail: string]: unknown;
}

/** Receives reports from fixture processes over its own connections, and sends them orders. */
export class Witness implements AsyncDisposable {
  readonly sightings = new Inbox<Sighting>();
  private readonly server = createServer((socket) => this.listenTo(socket));
  private readonly sockets = new Set<Socket>();
  private readonly byName = new Map<string, Socket>();
  private readonly untold = new Map<string, string[]>();

  static async open(): Promise<Witness> {
    const witness = new Witness();
    witness.server.listen(0, '127.0.0.1');
    await once(witness.server, 'listening');
    return witness;
  }

  env(who: string): Record<string, string> {
    const { port } = this.server.address() as AddressInfo;
    return { WITNESS_PORT: String(port), WITNESS_NAME: who };
  }

  /** The first match, past or future. */
  sees(who: string, saw: string, fits: (sighting: Sighting) => boolean = () => true): Promise<Sighting> {
    return this.sightings.first((sighting) => sighting.who === who && sighting.saw === saw && fits(sighting));
  }

  /** Reports and responses travel on different connections, so this waits for the expected number. */
  severalOf(
    who: string,
    saw: string,
    count: number,
    fits: (sighting: Sighting) => boolean = () => true,
  ): Promise<Sighting[]> {
    return this.sightings.several(
      count,
      (sighting) => sighting.who === who && sighting.saw === saw && fits(sighting),
    );
  }

  seenBy(who: string, saw: string): Sighting[] {
    return this.sightings.items.filter((sighting) => sighting.who === who && sighting.saw === saw);
  }

  /** Queued until the fixture connects. */
  tell(who: string, order: string): void {
    const socket = this.byName.get(who);
    if (socket === undefined) this.untold.set(who, [...(this.untold.get(who) ?? []), order]);
    else socket.write(`${order}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private listenTo(socket: Socket): void {
    let last: Sighting | undefined;
    this.sockets.add(socket);
    createInterface({ input: socket }).on('line', (line) => {
      last = JSON.parse(line) as Sighting;
      this.byName.set(last.who, socket);
      for (const order of this.untold.get(last.who) ?? []) socket.write(`${order}\n`);
      this.untold.delete(last.who);
      this.sightings.add(last);
    });
    // A killed process resets its connection, which counts as its exit.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.sockets.delete(socket);
      if (last !== undefined) this.sightings.add({ who: last.who, pid: last.pid, saw: 'end' });
    });
  }
}
