import type { Message } from '../protocol/envelope.ts';
import type { Edit } from '../protocol/splice.ts';
import type { Era } from '../protocol/versions.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Client } from '../upstreams/request.ts';
import type { RequestTarget } from '../upstreams/routed-request.ts';
import type { Scope } from './scope.ts';

/** A resource that a client follows. */
export interface Followed {
  /** As the client wrote it. */
  uri: string;
  /** Its owner: the group of that name in this project. */
  project: string;
  group: string;
  own: string;
  /** Where the client named one server of the group. */
  server: string | undefined;
  among: RequestTarget['among'];
  /** The one that tells of its updates. */
  replica: Replica;
}

/** A client that is told of changes: a session of the legacy era, or a subscription of the modern era. */
export interface Follower {
  readonly era: Era;
  readonly scope: Scope;
  /** Whom servers take it for. */
  readonly identity: Client;
  readonly capabilities: object;
  /** By the URI that the client gave, and the project where a request named one. */
  readonly followed: Map<string, Followed>;
  readonly isClosed: boolean;
  /** A list has changed: the notification that says so, and its method. */
  announce(method: string, notification: Buffer): void;
  /** Something that a server says, with what has to change in it. */
  tell(message: Message, edits: Edit[]): void;
}
