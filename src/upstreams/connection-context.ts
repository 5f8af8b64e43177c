import type { SwitchboardError } from '../errors.ts';
import type { Message } from '../protocol/message.ts';
import type { LiveUpstream } from './connector.ts';
import type { KnownEra } from './handshake.ts';
import type { OfferKind } from './lists.ts';
import type { Client, PendingRequest } from './request.ts';
import type { Slots } from './slots.ts';
import type { Upstream } from './upstream.ts';

/** Something that a server says by itself. `call` is the call that it belongs to, where that is certain. */
export interface UpstreamMessage {
  readonly upstream: Upstream;
  readonly message: Message;
  readonly call: PendingRequest | undefined;
}

/** What is heard of all connections of a replica. */
export interface ConnectionListener<Connection> {
  /** It is open, and knows nothing of what clients asked for before. */
  connected(connection: Connection): void;
  /** What this upstream had asked and was asked is over. */
  disconnected(connection: Connection, upstream: Upstream): void;
  notificationReceived(connection: Connection, said: UpstreamMessage): void;
  requestReceived(connection: Connection, said: UpstreamMessage): void;
  log(line: string): void;
}

/** What the connections of one replica share. */
export interface ReplicaContext<Connection> {
  readonly listener: ConnectionListener<Connection>;
  /** The state of a connection is another one, or the reason for it is. */
  stateChanged(): void;
  /** The server says that these of its lists have changed. */
  listsChanged(kinds: readonly OfferKind[]): void;
  connect(purpose: ConnectionPurpose, events: ConnectionEvents): Connection;
}

/** What a connection is made for. */
export interface ConnectionPurpose {
  /** The client that it is opened for; undefined where all share it. */
  owner: Client | undefined;
  /** What the server is told that clients can do. */
  capabilities: object;
  known: KnownEra;
  /** The slots of another connection, where both share them. */
  slots?: Slots;
}

/** What depends on what a connection is made for. */
export interface ConnectionEvents {
  /** `wasBroken`: the breaker was open until now. */
  opened(live: LiveUpstream, wasBroken: boolean): void;
  /** It could not be opened. `cause` is the reason as it was found. */
  failed(reason: SwitchboardError, cause: unknown): void;
  /** What was wrong with it while it was connected may be better now. */
  recheck?(): void;
  /** What the server has said by itself for a while may be lost. */
  missed?(): void;
}
