import { asSwitchboardError, SwitchboardError } from '../errors.ts';
import { bytesAt, type Message } from '../protocol/envelope.ts';
import { bytesOf, errorMessage, resultMessage, toRpcError } from '../protocol/jsonrpc.ts';
import { splice } from '../protocol/splice.ts';
import type { Connection } from '../upstreams/connection.ts';
import { ServerAnsweredError } from '../upstreams/upstream.ts';
import { refuse } from './refuse.ts';
import { required, unknownTarget } from './resolve.ts';
import type { Scope } from './scope.ts';
import type { Incoming, Session } from './session.ts';

const emptyResult = Buffer.from('{}');

/** resources/subscribe and resources/unsubscribe: the server sees one subscription, however many clients there are. */
export async function follow(scope: Scope, incoming: Incoming): Promise<void> {
  const { session, message, outlet } = incoming;
  const uri = required(message.uri, 'uri');
  await scope.discovered();
  const route = session.followed.get(uri) ?? scope.catalog.resource(uri);
  const server = route && scope.servers.get(route.server);
  if (route === undefined || server === undefined) {
    refuse(incoming, unknownTarget(message));
    return;
  }
  const connection = server.connectionFor(session, session.facts.capabilities);
  const begins = message.method === 'resources/subscribe';
  try {
    if (begins) {
      await subscribe(connection, session, route.own);
      session.followed.set(uri, route);
    } else {
      session.followed.delete(uri);
      if (!session.follows(route)) await unsubscribe(connection, session, route.own);
    }
    outlet.answer(resultMessage(bytesAt(message.bytes, message.idSpan!), emptyResult));
  } catch (error) {
    const rpc = error instanceof ServerAnsweredError ? error.rpc : toRpcError(asSwitchboardError(error));
    outlet.answer([errorMessage(bytesAt(message.bytes, message.idSpan!), rpc)]);
  }
}

async function subscribe(connection: Connection, session: Session, uri: string): Promise<void> {
  const { upstream, facts } = await connection.open();
  const { subscribe: can } = (facts.capabilities.resources ?? {}) as { subscribe?: unknown };
  if (can !== true)
    throw new SwitchboardError('method_not_found', 'The server of this resource has no subscriptions.');
  await connection.subscriptions.add(uri, session, () => upstream.request('resources/subscribe', { uri }));
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

async function unsubscribe(connection: Connection, session: Session, uri: string): Promise<void> {
  const live = connection.current;
  if (connection.subscriptions.remove(uri, session) && live !== undefined) {
    await live.upstream.request('resources/unsubscribe', { uri });
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
