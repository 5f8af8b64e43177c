import type { Socket } from 'node:net';
import { type Ends, type Owners, readOwners, type Table, tablesOf } from './sockets.ts';

/** The overflow uid: in a user namespace, every user without a mapping has it. */
const NOBODY = 65_534;

/** Distinguishes connections of our own user from those of other local users. */
export class LocalUsers {
  private readonly user = process.geteuid?.();
  private readonly verdicts = new WeakMap<Socket, boolean | Promise<boolean>>();
  private reading: Promise<unknown> = Promise.resolve();
  private readonly next = new Map<string, { wanted: Ends[]; owners: Promise<Owners> }>();
  private readonly readTable: typeof readOwners;

  constructor(readTable = readOwners) {
    this.readTable = readTable;
  }

  get areTold(): boolean {
    return this.user !== undefined && this.user !== NOBODY;
  }

  isOwn(socket: Socket): boolean {
    return this.verdicts.get(socket) === true;
  }

  /** Looks up the user, once for each connection. */
  ask(socket: Socket): boolean | Promise<boolean> {
    const known = this.verdicts.get(socket);
    if (known !== undefined) return known;
    const lookup = this.lookUp(socket).then(
      (isOwn) => {
        this.verdicts.set(socket, isOwn);
        return isOwn;
      },
      () => {
        this.verdicts.delete(socket);
        return false;
      },
    );
    this.verdicts.set(socket, lookup);
    return lookup;
  }

  private async lookUp(socket: Socket): Promise<boolean> {
    const ends = endsOf(socket);
    if (ends === undefined || !this.areTold) return false;
    for (const table of tablesOf(ends.ours.address)) {
      const owners = await this.read(table, ends);
      // After a reset, another user may own the port.
      if (!hasPeer(socket)) return false;
      const owner = owners(ends);
      if (owner !== undefined) return owner === this.user;
    }
    return false;
  }

  /** Starts a read after this call. Reads are shared and run one at a time, so many connections cost little. */
  private read(table: Table, ends: Ends): Promise<Owners> {
    const { port } = ends.ours;
    const key = `${table} ${port}`;
    const waiting = this.next.get(key);
    if (waiting !== undefined) {
      waiting.wanted.push(ends);
      return waiting.owners;
    }
    const wanted = [ends];
    const owners = this.reading.then(() => {
      this.next.delete(key);
      return this.readTable(table, port, wanted);
    });
    this.next.set(key, { wanted, owners });
    this.reading = owners.catch(() => {});
    return owners;
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): Ends | undefined {
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  if (localAddress === undefined || localPort === undefined) return undefined;
  return {
    theirs: { address: remoteAddress, port: remotePort },
    ours: { address: localAddress, port: localPort },
  };
}

/** Asks the system: `remoteAddress` is cached, and a paused socket does not report that the peer is gone. */
function hasPeer(socket: Socket): boolean {
  const { _handle: handle } = socket as unknown as { _handle?: { getpeername?(out: object): number } | null };
  return handle?.getpeername?.({}) === 0;
}
