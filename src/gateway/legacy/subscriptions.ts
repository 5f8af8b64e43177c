import { SwitchboardError } from '../../errors.ts';
import { idBytes, type Message } from '../../protocol/envelope.ts';
import { bytesOf, emptyResult, resultMessage } from '../../protocol/jsonrpc.ts';
import type { Connection } from '../../upstreams/connection.ts';
import type { Group } from '../../upstreams/group.ts';
import type { Replica } from '../../upstreams/replica.ts';
import type { RequestTarget } from '../../upstreams/routed-request.ts';
import type { Server } from '../../upstreams/server.ts';
import type { Servers } from '../../upstreams/servers.ts';
import { readWishes } from '../call-options.ts';
import type { Incoming } from '../caller.ts';
import type { Followed, Follower } from '../follower.ts';
import { hold } from '../hold.ts';
import { refuse } from '../refuse.ts';
import { required, unknownTarget } from '../resolve.ts';
import type { Scope, Scopes } from '../scope.ts';
import type { Session } from './caller.ts';

/** resources/subscribe and resources/unsubscribe: the server sees one subscription, however many clients there are. */
export function follow(scope: Scope, incoming: Incoming<Session>, changed: () => void): void {
  required(incoming.message.uri, 'uri');
  const discovered = scope.discovered();
  if (discovered === undefined) followKnown(scope, incoming, changed);
  else
    hold(
      incoming,
      () => discovered,
      () => followKnown(scope, incoming, changed),
    );
}

function followKnown(scope: Scope, incoming: Incoming<Session>, changed: () => void): void {
  const { caller: session, message, responder, prefer } = incoming;
  const uri = message.uri!.value;
  const key = followedKey(scope, session, uri);
  const begins = message.method === 'resources/subscribe';
  if (begins) checkFollowable(session, key, uri);
  const followed =
    session.followed.get(key) ??
    (begins ? choose(scope, session, uri, readWishes(message, prefer).labels) : undefined);
  if (followed === undefined && (begins || scope.catalog.resource(uri) === undefined)) {
    refuse(incoming, unknownTarget(message, scope.unlisted));
    return;
  }
  const change = async () => {
    if (followed !== undefined) await (begins ? begin : end)(session, key, followed);
  };
  hold(incoming, change, () => {
    changed();
    responder.respond(resultMessage(idBytes(message), emptyResult));
  });
}

/** What is followed is kept for as long as the session is. */
const MAX_FOLLOWED = 1_000;
const LONGEST_URI = 8 * 1024;

function checkFollowable({ followed }: Session, key: string, uri: string): void {
  if (uri.length > LONGEST_URI)
    throw new SwitchboardError('invalid_params', `params.uri is longer than ${LONGEST_URI} characters.`);
  if (followed.size >= MAX_FOLLOWED && !followed.has(key)) {
    const why = `A session follows ${MAX_FOLLOWED} resources at the most: unsubscribe from some.`;
    throw new SwitchboardError('invalid_params', why);
  }
}

/** The replica that tells of a resource's updates: the one that does so already, or whose turn it is. */
function choose(
  scope: Scope,
  follower: Follower,
  uri: string,
  labels: RequestTarget['labels'],
): Followed | undefined {
  const route = scope.catalog.resource(uri);
  const group = route && scope.group(route.group);
  if (route === undefined || group === undefined) return undefined;
  const { own, server, among } = route;
  const project = group.project.id;
  const known = [...follower.followed.values()].find(
    (other) =>
      other.own === own &&
      other.project === project &&
      other.group === group.name &&
      (server === undefined || other.replica.server === server),
  );
  if (known !== undefined) return { ...known, uri, server };
  const target: RequestTarget = {
    client: follower.identity,
    kind: 'resources',
    own,
    server,
    among,
    labels,
    only: undefined,
  };
  const replica = group.pick(target, undefined);
  if (replica === undefined) throw group.unavailable(target);
  return { uri, project, group: group.name, own, server, among, replica };
}

/** Follows one resource more. Fails where it does not exist, or nobody tells of its changes. */
export async function followOne(scope: Scope, follower: Follower, uri: string): Promise<void> {
  const followed = choose(scope, follower, uri, undefined);
  if (followed === undefined) throw new SwitchboardError('unknown_resource', `Unknown resource: ${uri}`);
  await begin(follower, uri, followed);
}

function targetOf({ identity: client }: Follower, { own, server, among }: Followed): RequestTarget {
  return { client, kind: 'resources', own, server, among, labels: undefined, only: undefined };
}

/** The same URI may stand for two things in two projects. */
function followedKey(scope: Scope, session: Session, uri: string): string {
  return scope === session.scope ? uri : `${scope.project?.id}\n${uri}`;
}

/** Follows what a session followed before a restart, as far as that is there when all servers were asked. */
export function followKept(scopes: Scopes, session: Session, keys: readonly string[]): void {
  for (const key of keys) {
    const end = key.indexOf('\n');
    const scope = end === -1 ? session.scope : scopes.of(key.slice(0, end));
    if (scope === undefined) continue;
    const again = async () => {
      await scope.discovered();
      const followed = session.isClosed ? undefined : choose(scope, session, key.slice(end + 1), undefined);
      if (followed !== undefined) await begin(session, key, followed);
    };
    again().catch(() => {});
  }
}

async function begin(session: Follower, key: string, followed: Followed): Promise<void> {
  session.followed.set(key, followed);
  try {
    await subscribe(followed.replica, session, followed.own);
  } catch (error) {
    if (session.followed.get(key) === followed) session.followed.delete(key);
    throw error;
  }
  // The client may have changed its mind while the server was told.
  if (session.followed.get(key) !== followed) await leave(session, followed.own, followed.replica);
}

async function end(session: Follower, key: string, followed: Followed): Promise<void> {
  session.followed.delete(key);
  await leave(session, followed.own, followed.replica);
}

/** The server is told when this was the last that anybody wanted to know of the resource. */
async function leave(session: Follower, own: string, replica: Replica): Promise<void> {
  const connection = replica.connections.for(session.identity, session);
  for (const other of session.followed.values()) if (other.own === own && other.replica === replica) return;
  await connection.unsubscribe(own, session);
}

async function subscribe(replica: Replica, session: Follower, uri: string): Promise<void> {
  const connection = await replica.connections.opened(session.identity, session);
  if (session.isClosed) throw new SwitchboardError('unknown_session', 'The session has ended.');
  await connection.subscribe(uri, session);
}

/** Asks on a new connection for the updates that clients still wait for, there or where nothing can come from any more. */
export function followAgain(
  server: Server,
  group: Group | undefined,
  replica: Replica,
  connection: Connection,
  sessions: Iterable<Follower>,
): void {
  for (const session of sessions) {
    for (const followed of session.followed.values()) {
      const isOurs =
        group !== undefined &&
        isOwner(group, followed) &&
        isSilent(followed.replica) &&
        group.mayTake(targetOf(session, followed), replica);
      if (followed.replica !== replica && !isOurs) continue;
      followed.replica = replica;
      // A server that speaks both eras is asked on the connection of the client's.
      const own = replica.connections.for(session.identity, session);
      if (own !== connection && own.current !== undefined) continue;
      subscribe(replica, session, followed.own).catch((error: Error) => server.log.add(error.message));
    }
  }
}

function isOwner({ name, project }: Group, followed: Followed): boolean {
  return followed.group === name && followed.project === project.id;
}

function isSilent({ isLive, condition }: Replica): boolean {
  return !isLive || condition.state === 'stopped';
}

/** A replica is gone: what it told of, another one of its group tells of from now on, if there is one. */
export function followElsewhere(group: Group, gone: Replica, sessions: Iterable<Follower>): void {
  for (const session of sessions) {
    for (const followed of session.followed.values()) {
      if (followed.replica === gone) move(group, session, followed);
    }
  }
}

/** Servers have changed groups: what clients of a group follow at one that left it, another one tells of. */
export function followRegrouped(servers: Servers, sessions: Iterable<Follower>): void {
  for (const session of sessions) {
    for (const followed of session.followed.values()) {
      if (followed.project !== servers.project.id) continue;
      const { replica, own, server } = followed;
      const group = servers.group(followed.group);
      // One that stops tells of changes until it is gone.
      const isAtHome = server !== undefined || replica.condition.state === 'stopped' || group?.has(replica);
      if (group === undefined || isAtHome || !move(group, session, followed)) continue;
      leave(session, own, replica).catch(() => {});
    }
  }
}

function move(group: Group, session: Follower, followed: Followed): boolean {
  const replica = group.pick(targetOf(session, followed), new Set([followed.replica]));
  if (replica === undefined) return false;
  followed.replica = replica;
  subscribe(replica, session, followed.own).catch(() => {});
  return true;
}

/** Passes a resource's update to those who follow it, under the URI that each of them gave. */
export function passUpdate(replica: Replica, connection: Connection, message: Message): void {
  const updated = message.uri;
  if (updated === undefined) return;
  for (const [client, own] of connection.subscriptions.subscribers(updated.value)) {
    const session = client as Follower;
    for (const followed of session.followed.values()) {
      // One that it has moved away from may still tell of it.
      if (followed.replica !== replica || followed.own !== own) continue;
      const uri = bytesOf(followed.uri + updated.value.slice(own.length));
      session.tell(message, [{ start: updated.start, end: updated.end, bytes: uri }]);
    }
  }
}
