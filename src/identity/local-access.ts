import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { SwitchboardError } from '../errors.ts';
import { type Access, bearerOf, isSameText } from './access.ts';
import { LocalUsers } from './local-users.ts';
import { localUser, type Sender } from './principal.ts';

/** Without authentication: admits processes of our own user, and requests that carry the token, all as the local user. */
export class LocalAccess implements Access {
  private readonly local: Sender = { principal: localUser(), address: undefined };
  readonly vouches = false;
  private readonly users = new LocalUsers();
  private readonly token: string | undefined;
  private readonly isOpenToAll: boolean;

  /** `isOpenToAll`: whether MCP needs no token. */
  constructor(token: string | undefined, isOpenToAll: boolean) {
    this.token = token;
    this.isOpenToAll = isOpenToAll;
  }

  /** A token counts only for the request that carries it: a connection may be shared. */
  identify(request: IncomingMessage): Sender | Promise<Sender> {
    if (this.users.isOwn(request.socket) || this.isOpen(request)) return this.local;
    const token = bearerOf(request);
    if (token !== undefined && this.token !== undefined && isSameText(token, this.token)) return this.local;
    return this.lookUp(request);
  }

  ask(socket: Socket): boolean | Promise<boolean> {
    return this.users.ask(socket);
  }

  get tellsUsers(): boolean {
    return this.users.areTold;
  }

  private async lookUp({ socket, url = '/' }: IncomingMessage): Promise<Sender> {
    if (await this.users.ask(socket)) return this.local;
    throw unauthorized(url.startsWith('/api/'));
  }

  private isOpen({ url = '/' }: IncomingMessage): boolean {
    return this.isOpenToAll && !url.startsWith('/api/');
  }
}

function unauthorized(isForApi: boolean): SwitchboardError {
  const who = 'Only processes of the user that runs Switchboard have access without a token.';
  const token =
    'Send "Authorization: Bearer <token>" with the token that "switchboard token" prints to that user';
  const setting = isForApi
    ? ''
    : ', or open MCP to all users of this machine with the setting "localAccess": "everyone"';
  return new SwitchboardError('unauthorized', `${who} ${token}${setting}.`);
}
