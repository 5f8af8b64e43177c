import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { LocalUsers } from './local-users.ts';
import { localUser, type Sender } from './principal.ts';

/** Admits processes of our own user, and requests that carry the token. */
export class Access {
  readonly local: Sender = { principal: localUser(), address: undefined };
  private readonly users = new LocalUsers();
  private readonly credentials: string | undefined;

  constructor(token: string | undefined) {
    this.credentials = token === undefined ? undefined : `bearer ${token}`;
  }

  /** Decides without a lookup. A token counts only for the request that carries it: a connection may be shared. */
  isGranted({ socket, headers: { authorization } }: IncomingMessage): boolean {
    return this.users.isOwn(socket) || (authorization !== undefined && this.isToken(authorization));
  }

  /** Looks up the user at the other end. */
  ask(socket: Socket): boolean | Promise<boolean> {
    return this.users.ask(socket);
  }

  /** Whether the system can distinguish users. */
  get tellsUsers(): boolean {
    return this.users.areTold;
  }

  /** Compares in constant time; the length is not secret. */
  private isToken(authorization: string): boolean {
    const { credentials } = this;
    if (credentials?.length !== authorization.length) return false;
    let difference = 0;
    // The scheme is case-insensitive.
    for (let index = 0; index < 6; index++) {
      difference |= (authorization.charCodeAt(index) | 0x20) ^ credentials.charCodeAt(index);
    }
    for (let index = 6; index < credentials.length; index++) {
      difference |= authorization.charCodeAt(index) ^ credentials.charCodeAt(index);
    }
    return difference === 0;
  }
}
