import { SwitchboardError } from '../errors.ts';
import { idBytes, type Message } from '../protocol/envelope.ts';
import { bytesOf, emptyResult, resultMessage } from '../protocol/jsonrpc.ts';
import { splice } from '../protocol/splice.ts';
import type { Connection } from '../upstreams/connection.ts';
import { hold } from './hold.ts';
import { refuse } from './refuse.ts';
import { required, unknownTarget } from './resolve.ts';
import type { Scope } from './scope.ts';
import type { Followed, Incoming, Session } from './session.ts';

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
  const { session, message, outlet } = incoming;
  const uri = message.uri!.value;
  const route = session.followed.get(uri) ?? scope.catalog.resource(uri);
  const server = route && scope.servers.get(route.server);
  if (route === undefined || server === undefined) {
    refuse(incoming, unknownTarget(message));
    return;
  }
  const connection = server.connectionFor(session, session.facts.capabilities);
  const begins = message.method === 'resources/subscribe';
  const done = begins ? begin(connection, session, uri, route) : end(connection, session, uri, route);
  hold(incoming, done, () => outlet.answer(resultMessage(idBytes(message), emptyResult)));
}

async function begin(connection: Connection, session: Session, uri: string, route: Followed): Promise<void> {
  await subscribe(connection, session, route.own);
  session.followed.set(uri, route);
}

async function end(connection: Connection, session: Session, uri: string, route: Followed): Promise<void> {
  session.followed.delete(uri);
  if (session.follows(route) || !connection.subscriptions.remove(route.own, session)) return;
  await connection.current?.upstream.request('resources/unsubscribe', { uri: route.own }, PATIENCE_MS);
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

/** Asks on a new connection for the updates that clients still wait for. */
export function followAgain(server: string, connection: Connection, sessions: Iterable<Session>): void {
  for (const session of sessions) {
    for (const followed of session.followed.values()) {
      if (followed.server !== server) continue;
      subscribe(connection, session, followed.own).catch((error: Error) => connection.log.add(error.message));
    }
  }
}

/** Passes a resource's update to those who follow it, under the URI that each of them gave. */
export function passUpdate(server: string, connection: Connection, message: Message): void {
  const updated = message.uri;
  if (updated === undefined) return;
  for (const [client, own] of connection.subscriptions.followers(updated.value)) {
    const session = client as Session;
    for (const [given, followed] of session.followed) {
      if (followed.server !== server || followed.own !== own) continue;
      const uri = bytesOf(given + updated.value.slice(own.length));
      session.stream.send([splice(message.bytes, [{ start: updated.start, end: updated.end, bytes: uri }])]);
    }
  }
}
