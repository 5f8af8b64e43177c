import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { LocalUsers } from './local-users.ts';

/** Who may use Switchboard: processes of its own user, and whoever has the token. */
export class Access {
  private readonly users = new LocalUsers();
  private readonly credentials: string | undefined;

  constructor(token: string | undefined) {
    this.credentials = token === undefined ? undefined : `bearer ${token}`;
  }

  /** Whether that is clear at once. A token is good for the request that carries it: connections may be shared. */
  isGranted({ socket, headers: { authorization } }: IncomingMessage): boolean {
    return this.users.isOwn(socket) || (authorization !== undefined && this.isToken(authorization));
  }

  /** Whether it is, once the system was asked who is at the other end. */
  ask(socket: Socket): boolean | Promise<boolean> {
    return this.users.ask(socket);
  }

  /** Whether the system can tell users apart at all. */
  get tellsUsers(): boolean {
    return this.users.areTold;
  }

  /** Takes as long for a wrong one as for the right one. */
  private isToken(authorization: string): boolean {
    const { credentials } = this;
    if (credentials?.length !== authorization.length) return false;
    let difference = 0;
    // The name of the scheme may be written in capitals.
    for (let index = 0; index < 6; index++) {
      difference |= (authorization.charCodeAt(index) | 0x20) ^ credentials.charCodeAt(index);
    }
    for (let index = 6; index < credentials.length; index++) {
      difference |= authorization.charCodeAt(index) ^ credentials.charCodeAt(index);
    }
    return difference === 0;
  }
}
