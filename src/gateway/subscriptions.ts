import { SwitchboardError } from '../errors.ts';
import type { Principal } from '../identity/principal.ts';
import { bytesOf } from '../protocol/jsonrpc.ts';
import type { Message } from '../protocol/message.ts';
import type { Edit } from '../protocol/splice.ts';
import type { Era } from '../protocol/versions.ts';
import type { Connection } from '../upstreams/connection.ts';
import type { Group } from '../upstreams/group.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Client } from '../upstreams/request.ts';
import type { RequestTarget } from '../upstreams/routed-request.ts';
import type { Server } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import { serversOf } from './items.ts';
import type { Scope } from './scope.ts';

export interface Subscription {
  uri: string;
  project: string;
  group: string;
  own: string;
  /** Set if the client named one server of the group. */
  server: string | undefined;
  among: RequestTarget['among'];
  replica: Replica;
}

/** Whether the subscriber may have the updates of this URI. */
export function mayFollow(
  { scope, principal: { permissions } }: Subscriber,
  { project, group, replica }: Subscription,
  uri: string,
): boolean {
  if (permissions.isUnrestricted) return true;
  const home = scope.groupOf(project, replica.server)?.group;
  const servers = home === undefined ? [group, replica.server] : serversOf(home);
  return permissions.decide('call', project, { kind: 'resource', servers, name: uri, hints: [] }).isAllowed;
}

/** A client with subscriptions: a legacy session, or a modern listener. */
export interface Subscriber {
  readonly era: Era;
  readonly scope: Scope;
  readonly principal: Principal;
  readonly identity: Client;
  readonly capabilities: object;
  /** By the client's URI, prefixed with the project if a request named one. */
  readonly subscriptions: Map<string, Subscription>;
  readonly isClosed: boolean;
  listChanged(method: string, notification: Buffer): void;
  resourceUpdated(message: Message, edits: Edit[]): void;
}

/** Prefers the replica that already reports updates, then the next in turn. Undefined for unknown resources. */
export function chooseReplica(
  scope: Scope,
  subscriber: Subscriber,
  uri: string,
  labels: RequestTarget['labels'],
): Subscription | undefined {
  const route = scope.catalog.resource(uri);
  const group = route && scope.group(route.group);
  if (route === undefined || group === undefined) return undefined;
  const { own, server, among } = route;
  const project = group.project.id;
  const known = [...subscriber.subscriptions.values()].find(
    (other) =>
      other.own === own && isOwner(group, other) && (server === undefined || other.replica.server === server),
  );
  if (known !== undefined) return { ...known, uri, server };
  const target = { ...targetOf(subscriber, { own, server, among }), labels };
  const replica = group.pick(target, undefined);
  if (replica === undefined) throw group.unavailable(target);
  return { uri, project, group: group.name, own, server, among, replica };
}

/** Throws if the resource does not exist, or its server has no subscriptions. */
export async function subscribeTo(scope: Scope, subscriber: Subscriber, uri: string): Promise<void> {
  const subscription = chooseReplica(scope, subscriber, uri, undefined);
  if (subscription === undefined) throw new SwitchboardError('unknown_resource', `Unknown resource: ${uri}`);
  await begin(subscriber, uri, subscription);
}

export async function begin(subscriber: Subscriber, key: string, subscription: Subscription): Promise<void> {
  const { subscriptions } = subscriber;
  subscriptions.set(key, subscription);
  try {
    await subscribe(subscription.replica, subscriber, subscription.own);
  } catch (error) {
    if (subscriptions.get(key) === subscription) subscriptions.delete(key);
    throw error;
  }
  // The client may have unsubscribed meanwhile.
  if (subscriptions.get(key) !== subscription)
    await unsubscribe(subscriber, subscription.own, subscription.replica);
}

export async function end(
  subscriber: Subscriber,
  key: string,
  { own, replica }: Subscription,
): Promise<void> {
  subscriber.subscriptions.delete(key);
  await unsubscribe(subscriber, own, replica);
}

/** Skips the server if another subscription needs the same updates. */
async function unsubscribe(subscriber: Subscriber, own: string, replica: Replica): Promise<void> {
  const connection = replica.connections.for(subscriber.identity, subscriber);
  for (const other of subscriber.subscriptions.values())
    if (other.own === own && other.replica === replica) return;
  await connection.unsubscribe(own, subscriber);
}

async function subscribe(replica: Replica, subscriber: Subscriber, uri: string): Promise<void> {
  const connection = await replica.connections.opened(subscriber.identity, subscriber);
  if (subscriber.isClosed) throw new SwitchboardError('unknown_session', 'The session has ended.');
  await connection.subscribe(uri, subscriber);
}

/** Restores the subscriptions of this replica, and of replicas that no longer report updates. */
export function restoreSubscriptions(
  server: Server,
  group: Group | undefined,
  replica: Replica,
  connection: Connection,
  subscribers: Iterable<Subscriber>,
): void {
  for (const [subscriber, subscription] of subscriptionsOf(subscribers)) {
    const isOurs =
      group !== undefined &&
      isOwner(group, subscription) &&
      isSilent(subscription.replica) &&
      group.mayTake(targetOf(subscriber, subscription), replica);
    if (subscription.replica !== replica && !isOurs) continue;
    subscription.replica = replica;
    // A server of both eras has a connection for each, and only the client's own matters.
    const own = replica.connections.for(subscriber.identity, subscriber);
    if (own !== connection && own.current !== undefined) continue;
    subscribe(replica, subscriber, subscription.own).catch((error: Error) => server.log.add(error.message));
  }
}

export function moveSubscriptions(group: Group, gone: Replica, subscribers: Iterable<Subscriber>): void {
  for (const [subscriber, subscription] of subscriptionsOf(subscribers)) {
    if (subscription.replica === gone) move(group, subscriber, subscription);
  }
}

export function regroupSubscriptions(servers: Servers, subscribers: Iterable<Subscriber>): void {
  for (const [subscriber, subscription] of subscriptionsOf(subscribers)) {
    if (subscription.project !== servers.project.id) continue;
    const { replica, own, server } = subscription;
    const group = servers.group(subscription.group);
    // A stopping replica reports updates until it has exited.
    const mayStay = server !== undefined || replica.condition.state === 'stopped' || group?.has(replica);
    if (group === undefined || mayStay || !move(group, subscriber, subscription)) continue;
    unsubscribe(subscriber, own, replica).catch(() => {});
  }
}

/** Each subscriber gets the update under its own URI. */
export function passUpdate(replica: Replica, connection: Connection, message: Message): void {
  const updated = message.uri;
  if (updated === undefined) return;
  for (const [client, own] of connection.subscriptions.subscribers(updated.value)) {
    const subscriber = client as Subscriber;
    for (const subscription of subscriber.subscriptions.values()) {
      // A replica may still report updates after the subscription has moved away.
      if (subscription.replica !== replica || subscription.own !== own) continue;
      // A server may report what is below the URI too.
      if (!mayFollow(subscriber, subscription, updated.value)) continue;
      const uri = bytesOf(subscription.uri + updated.value.slice(own.length));
      subscriber.resourceUpdated(message, [{ start: updated.start, end: updated.end, bytes: uri }]);
    }
  }
}

function* subscriptionsOf(subscribers: Iterable<Subscriber>): Generator<[Subscriber, Subscription]> {
  for (const subscriber of subscribers)
    for (const subscription of subscriber.subscriptions.values()) yield [subscriber, subscription];
}

function move(group: Group, subscriber: Subscriber, subscription: Subscription): boolean {
  const replica = group.pick(targetOf(subscriber, subscription), new Set([subscription.replica]));
  if (replica === undefined) return false;
  subscription.replica = replica;
  subscribe(replica, subscriber, subscription.own).catch(() => {});
  return true;
}

function targetOf(
  { identity: client }: Subscriber,
  { own, server, among }: Pick<Subscription, 'own' | 'server' | 'among'>,
): RequestTarget {
  return { client, kind: 'resources', own, server, among, labels: undefined, only: undefined };
}

function isOwner({ name, project }: Group, subscription: Subscription): boolean {
  return subscription.group === name && subscription.project === project.id;
}

function isSilent({ isLive, condition }: Replica): boolean {
  return !isLive || condition.state === 'stopped';
}
