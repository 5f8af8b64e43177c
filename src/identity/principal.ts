import { SwitchboardError } from '../errors.ts';
import { type Permissions, unrestricted } from './permissions.ts';

export const principalKinds = ['local', 'key', 'person'] as const;

/** Who sent a request, and from where. */
export interface Sender {
  readonly principal: Principal;
  /** The address of the client, behind trusted proxies; undefined if it is no network client. */
  readonly address: string | undefined;
  /** What it was identified by, which may end while the principal goes on. */
  readonly credential?: { readonly isOver: boolean };
}

/** A request may take long to arrive: throws if its credential has ended since it began. */
export function checkValid({ principal, credential }: Sender): void {
  if (!principal.isEnded && !credential?.isOver) return;
  throw credentialEnded();
}

export function credentialEnded(): SwitchboardError {
  return new SwitchboardError('unauthorized', 'The credential has expired or was revoked.');
}

/** The sender of requests. It lives as long as it is known, and its permissions change with roles and rules. */
export class Principal {
  readonly kind: (typeof principalKinds)[number];
  readonly id: string;
  name: string;
  permissions: Permissions;
  expiresAt: number;
  /** Set when it was revoked, removed or has expired. Nothing of it may go on then. */
  isEnded = false;

  constructor(
    kind: Principal['kind'],
    id: string,
    name: string,
    permissions: Permissions,
    expiresAt = Number.POSITIVE_INFINITY,
  ) {
    this.kind = kind;
    this.id = id;
    this.name = name;
    this.permissions = permissions;
    this.expiresAt = expiresAt;
  }
}

/** The person who runs Switchboard on this machine. */
export function localUser(): Principal {
  return new Principal('local', 'local', 'local user', unrestricted());
}
