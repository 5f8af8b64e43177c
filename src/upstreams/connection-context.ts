import type { SwitchboardError } from '../errors.ts';
import type { Message } from '../protocol/message.ts';
import type { LiveUpstream } from './connector.ts';
import type { KnownEra } from './handshake.ts';
import type { OfferKind } from './lists.ts';
import type { Client, PendingRequest } from './request.ts';
import type { Slots } from './slots.ts';
import type { Upstream } from './upstream.ts';

/** A message that a server sent on its own initiative. `call` is the call that it belongs to, if that is certain. */
export interface UpstreamMessage {
  readonly upstream: Upstream;
  readonly message: Message;
  readonly call: PendingRequest | undefined;
}

/** Events of all connections of a replica. */
export interface ConnectionListener<Connection> {
  /** A connection was opened, without the subscriptions and log level of earlier ones. */
  connected(connection: Connection): void;
  /** All requests in both directions are over. */
  disconnected(connection: Connection, upstream: Upstream): void;
  notificationReceived(connection: Connection, message: UpstreamMessage): void;
  requestReceived(connection: Connection, message: UpstreamMessage): void;
  log(line: string): void;
}

export interface ReplicaContext<Connection> {
  readonly listener: ConnectionListener<Connection>;
  /** The state, its reason or the next try changed. */
  stateChanged(): void;
  /** The server announced changes of these lists. */
  listsChanged(kinds: readonly OfferKind[]): void;
  connect(purpose: ConnectionPurpose, events: ConnectionEvents): Connection;
}

export interface ConnectionPurpose {
  /** The client that it is opened for; undefined if it is shared. */
  owner: Client | undefined;
  /** The client capabilities that the server sees. */
  capabilities: object;
  known: KnownEra;
  /** The slots of another connection, if both share them. */
  slots?: Slots;
}

/** Handlers that depend on the purpose of a connection. */
export interface ConnectionEvents {
  /** `wasBroken`: the breaker was open until now. */
  opened(live: LiveUpstream, wasBroken: boolean): void;
  /** Connecting failed. `cause` is the original error. */
  failed(reason: SwitchboardError, cause: unknown): void;
  /** It is time to check a degraded connection again. */
  recheck?(): void;
  /** Notifications may have been lost. */
  missed?(): void;
}
