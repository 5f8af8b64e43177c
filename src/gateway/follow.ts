import { SwitchboardError } from '../errors.ts';
import { idBytes, type Message } from '../protocol/envelope.ts';
import { bytesOf, emptyResult, resultMessage } from '../protocol/jsonrpc.ts';
import { splice } from '../protocol/splice.ts';
import type { Connection } from '../upstreams/connection.ts';
import type { Errand, Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Server } from '../upstreams/server.ts';
import { hold } from './hold.ts';
import { refuse } from './refuse.ts';
import { required, unknownTarget } from './resolve.ts';
import type { Scope } from './scope.ts';
import type { Followed, Incoming, Session } from './session.ts';
import { readWishes } from './wishes.ts';

/** A server that does not answer a subscription in this time gets no more of the client's. */
const PATIENCE_MS = 60_000;

/** resources/subscribe and resources/unsubscribe: the server sees one subscription, however many clients there are. */
export function follow(scope: Scope, incoming: Incoming): void {
  required(incoming.message.uri, 'uri');
  const discovered = scope.discovered();
  if (discovered === undefined) followKnown(scope, incoming);
  else hold(incoming, discovered, () => followKnown(scope, incoming));
}

function followKnown(scope: Scope, incoming: Incoming): void {
  const { session, message, outlet, prefer } = incoming;
  const uri = message.uri!.value;
  const begins = message.method === 'resources/subscribe';
  const followed =
    session.followed.get(uri) ?? (begins ? choose(scope, session, message, prefer) : undefined);
  if (followed === undefined && (begins || scope.catalog.resource(uri) === undefined)) {
    refuse(incoming, unknownTarget(message, scope.absent()));
    return;
  }
  const done = followed === undefined ? Promise.resolve() : (begins ? begin : end)(session, uri, followed);
  hold(incoming, done, () => outlet.answer(resultMessage(idBytes(message), emptyResult)));
}

/** The replica that tells of a resource's updates: the one that does so already, or whose turn it is. */
function choose(
  scope: Scope,
  session: Session,
  message: Message,
  prefer: string | undefined,
): Followed | undefined {
  const route = scope.catalog.resource(message.uri!.value);
  const group = route && scope.servers.group(route.group);
  if (route === undefined || group === undefined) return undefined;
  const { own, server } = route;
  const known = session.follows(group.name, own);
  if (known !== undefined) return known;
  const { labels } = readWishes(message, prefer);
  const errand: Errand = { client: session, kind: 'resources', own, server, labels };
  const replica = group.pick(errand, undefined);
  if (replica === undefined) throw group.unavailable(errand, undefined);
  return { group: group.name, own, replica };
}

async function begin(session: Session, uri: string, followed: Followed): Promise<void> {
  const connection = followed.replica.connectionFor(session, session.facts.capabilities);
  await subscribe(connection, session, followed.own);
  session.followed.set(uri, followed);
}

async function end(session: Session, uri: string, { group, own, replica }: Followed): Promise<void> {
  const connection = replica.connectionFor(session, session.facts.capabilities);
  session.followed.delete(uri);
  if (session.follows(group, own) !== undefined || !connection.subscriptions.remove(own, session)) return;
  await connection.current?.upstream.request('resources/unsubscribe', { uri: own }, PATIENCE_MS);
}

async function subscribe(connection: Connection, session: Session, uri: string): Promise<void> {
  const { upstream, facts } = await connection.open();
  if (session.isClosed) throw new SwitchboardError('unknown_session', 'The session has ended.');
  const { subscribe: can } = (facts.capabilities.resources ?? {}) as { subscribe?: unknown };
  if (can !== true)
    throw new SwitchboardError('method_not_found', 'The server of this resource has no subscriptions.');
  const tell = () => upstream.request('resources/subscribe', { uri }, PATIENCE_MS);
  await connection.subscriptions.add(uri, session, tell);
}

/** Asks on a new connection for the updates that clients still wait for, there or where nothing can come from any more. */
export function followAgain(
  server: Server,
  replica: Replica,
  connection: Connection,
  sessions: Iterable<Session>,
): void {
  for (const session of sessions) {
    for (const followed of session.followed.values()) {
      const isOrphan = followed.group === server.group && followed.replica.condition.state === 'stopped';
      if (followed.replica !== replica && !isOrphan) continue;
      followed.replica = replica;
      subscribe(connection, session, followed.own).catch((error: Error) => server.log.add(error.message));
    }
  }
}

/** A replica is gone: what it told of, another one of its group tells of from now on, if there is one. */
export function followElsewhere(group: Group, gone: Replica, sessions: Iterable<Session>): void {
  for (const session of sessions) {
    for (const followed of session.followed.values()) {
      if (followed.replica !== gone) continue;
      const { own } = followed;
      const errand = {
        client: session,
        kind: 'resources' as const,
        own,
        server: undefined,
        labels: undefined,
      };
      const replica = group.pick(errand, new Set([gone]));
      if (replica === undefined) continue;
      followed.replica = replica;
      const connection = replica.connectionFor(session, session.facts.capabilities);
      subscribe(connection, session, own).catch(() => {});
    }
  }
}

/** Passes a resource's update to those who follow it, under the URI that each of them gave. */
export function passUpdate(group: string, connection: Connection, message: Message): void {
  const updated = message.uri;
  if (updated === undefined) return;
  for (const [client, own] of connection.subscriptions.followers(updated.value)) {
    const session = client as Session;
    for (const [given, followed] of session.followed) {
      if (followed.group !== group || followed.own !== own) continue;
      const uri = bytesOf(given + updated.value.slice(own.length));
      session.stream.send([splice(message.bytes, [{ start: updated.start, end: updated.end, bytes: uri }])]);
    }
  }
}
