import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { SwitchboardError } from '../errors.ts';
import { type Access, bearerOf, isSameText } from './access.ts';
import { isDirectAndLocal, type TrustedProxies } from './client-address.ts';
import { KEY_PREFIX, keyIdOf } from './keys.ts';
import { LocalUsers } from './local-users.ts';
import type { Policy } from './policy.ts';
import { localUser, type Principal, type Sender } from './principal.ts';

/** A request without a valid credential, for the audit log. */
export interface RefusedCredential {
  address: string | undefined;
  reason: 'none' | 'unknown' | 'expired' | 'in the URL' | 'token from elsewhere';
  /** The public id of the key, if it has one. */
  key: string | undefined;
}

interface Verified {
  /** The whole header. */
  readonly authorization: string;
  readonly epoch: number;
  /** When its use was noted last. */
  round: number;
  readonly sender: Sender;
  readonly secret: string;
  /** Whether the next request may be of a client at another address. */
  readonly isProxied: boolean;
}

interface KeyAccessOptions {
  policy: Policy;
  /** Of this machine: makes its bearer the local user, so that nobody is locked out. */
  token: string | undefined;
  proxies: TrustedProxies;
  refused(refusal: RefusedCredential): void;
}

/** With authentication: every request carries a key, or the token from this machine. */
export class KeyAccess implements Access {
  readonly tellsUsers = true;
  readonly vouches = true;
  private readonly options: KeyAccessOptions;
  private readonly local: Principal = localUser();
  private readonly users = new LocalUsers();
  /** The credential of the latest request on each connection, so that the next one needs no hash. */
  private readonly verified = new WeakMap<Socket, Verified>();

  constructor(options: KeyAccessOptions) {
    this.options = options;
  }

  identify(request: IncomingMessage): Sender {
    const { policy, proxies } = this.options;
    const { authorization } = request.headers;
    const known = this.verified.get(request.socket);
    const isKnown =
      known !== undefined &&
      authorization !== undefined &&
      known.epoch === policy.epoch &&
      isSameText(known.authorization, authorization);
    const leaked = keyIn(request.url ?? '');
    if (leaked !== undefined) throw this.refuse(request, 'in the URL', leaked);
    if (!isKnown) return this.verify(request, bearerOf(request));
    // Once in each round is exact enough.
    if (known.round !== policy.useRound) {
      known.round = policy.useRound;
      policy.used(known.secret, Date.now());
    }
    return known.isProxied ? { ...known.sender, address: proxies.clientOf(request) } : known.sender;
  }

  /** Of own processes, when most connections are taken. */
  ask(socket: Socket): boolean | Promise<boolean> {
    return this.users.ask(socket);
  }

  private verify(request: IncomingMessage, bearer: string | undefined): Sender {
    const { policy, token, proxies } = this.options;
    if (bearer === undefined) throw this.refuse(request, 'none');
    if (token !== undefined && isSameText(bearer, token)) {
      if (!isDirectAndLocal(request)) throw this.refuse(request, 'token from elsewhere');
      return { principal: this.local, address: proxies.clientOf(request) };
    }
    const found = policy.authenticate(bearer);
    if (typeof found === 'string') throw this.refuse(request, found, bearer);
    const { principal, secretId: secret, credential } = found;
    const sender = { principal, address: proxies.clientOf(request), credential };
    policy.used(secret, Date.now());
    const isProxied = proxies.trusts(request.socket);
    const { authorization = '' } = request.headers;
    const { epoch, useRound: round } = policy;
    this.verified.set(request.socket, { authorization, epoch, round, sender, secret, isProxied });
    return sender;
  }

  private refuse(request: IncomingMessage, reason: RefusedCredential['reason'], text = ''): SwitchboardError {
    const address = this.options.proxies.clientOf(request);
    this.options.refused({ address, reason, key: keyIdOf(text) });
    return new SwitchboardError('unauthorized', messages[reason]);
  }
}

/** Also percent-encoded. Other text with the prefix is no secret. */
function keyIn(url: string): string | undefined {
  const plain = url.includes('%') ? url.replaceAll(/%([0-9a-f]{2})/gi, decoded) : url;
  return plain.includes(KEY_PREFIX) ? /sbk_[\w-]{55}/.exec(plain)?.[0] : undefined;
}

function decoded(_: string, hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16));
}

const howTo = 'Send "Authorization: Bearer <key>" with a key that "switchboard key add" made.';
const messages: Record<RefusedCredential['reason'], string> = {
  none: `This Switchboard requires a key. ${howTo}`,
  unknown: `The key is unknown or was revoked. ${howTo}`,
  expired: `The key has expired. ${howTo}`,
  'in the URL': `A key must not be in the URL, which logs keep: replace that key. ${howTo}`,
  'token from elsewhere': `The token is valid only on the machine of Switchboard, without a proxy. ${howTo}`,
};
