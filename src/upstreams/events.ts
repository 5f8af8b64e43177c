import type { SwitchboardError } from '../errors.ts';
import type { Message } from '../protocol/envelope.ts';
import type { State } from './condition.ts';
import type { Connection } from './connection.ts';
import type { OfferKind } from './lists.ts';
import type { Replica } from './replica.ts';
import type { PendingRequest } from './request.ts';
import type { Server } from './server.ts';
import type { Project } from './settings.ts';
import type { Upstream } from './upstream.ts';

/** Where something happens. */
export interface Origin {
  readonly server: Server;
  readonly replica: Replica;
  readonly connection: Connection;
}

/** Something that a server says by itself. `call` is the call that it belongs to, where that is certain. */
export interface Word extends Origin {
  readonly upstream: Upstream;
  readonly message: Message;
  readonly call: PendingRequest | undefined;
}

/** What a connection does about one of its upstreams. */
export interface UpstreamEvents {
  notified(message: Message, call: PendingRequest | undefined): void;
  asked(message: Message, call: PendingRequest | undefined): void;
  /** What the server has said by itself for a while may be lost. */
  missed(): void;
  /** Nothing new can be sent; what is under way may still be answered. */
  stale(error: SwitchboardError, isThere: boolean): void;
  closed(error: SwitchboardError): void;
  log(line: string): void;
  /** Takes secrets out of what the channel says of a failure. */
  redacted(error: SwitchboardError): SwitchboardError;
}

/** What the rest of the program hears of its servers. */
export interface ServerEvents {
  /** The state of a replica is another one, or the reason for it is. */
  stateChanged(server: Server, replica: Replica, from: State): void;
  /** What the server offers of these kinds is known anew. */
  offerChanged(server: Server, kinds: OfferKind[]): void;
  /** A connection is open that knows nothing of what clients asked for before. */
  connected(origin: Origin): void;
  /** What this upstream had asked and was asked is over. */
  disconnected(origin: Origin, upstream: Upstream): void;
  notified(word: Word): void;
  asked(word: Word): void;
  /** A line for its log. */
  logged(server: Server, line: string): void;
  /** Calls failed because their server was not available: a line for whoever looks after the program. */
  callsFailed(project: Project, line: string): void;
}
