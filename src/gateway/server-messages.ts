import { stopping } from '../errors.ts';
import { bytesAt, idBytes } from '../protocol/message.ts';
import { Delivery } from '../upstreams/delivery.ts';
import type { PendingRequest } from '../upstreams/request.ts';
import type { Server, ServerMessage } from '../upstreams/server.ts';
import { ClientCall } from './client-call.ts';
import type { HeldCalls } from './crossing/held-calls.ts';
import { type Session, sessionOf } from './legacy/caller.ts';
import { decline, declineAmbiguous } from './legacy/server-requests.ts';
import { passTaskProgress, passTaskStatus } from './legacy/tasks.ts';
import { passUpdate } from './subscriptions.ts';

/** Routes notifications and requests of servers to the client that they are meant for, never to a wrong one. */
export class ServerMessages {
  private readonly sessions: ReadonlyMap<string, Session>;
  private readonly held: HeldCalls;

  constructor(sessions: ReadonlyMap<string, Session>, held: HeldCalls) {
    this.sessions = sessions;
    this.held = held;
  }

  onNotification(received: ServerMessage): void {
    const { message, replica, connection, upstream } = received;
    switch (message.method) {
      case 'notifications/resources/updated':
        passUpdate(replica, connection, message);
        return;
      case 'notifications/cancelled':
        for (const { serverRequests } of this.sessions.values()) serverRequests.cancel(upstream, message);
        if (message.requestId !== undefined)
          this.held.withdraw(upstream, bytesAt(message.bytes, message.requestId));
        return;
      case 'notifications/tasks/status':
        passTaskStatus(replica, message, this.sessions.values());
        return;
      case 'notifications/progress':
        passTaskProgress(upstream, message, this.sessions.values());
        return;
      default:
        this.passNotification(received);
    }
  }

  onRequest(received: ServerMessage): void {
    const { message, server, upstream } = received;
    // The client cannot respond any more.
    if (this.held.isClosed) {
      decline(upstream, idBytes(message), stopping());
      return;
    }
    const call = callOf(received);
    if (call !== undefined) {
      call.onServerRequest(message, upstream);
      return;
    }
    const session = this.onlySession(received);
    if (session === undefined) declineAmbiguous(message, upstream, server);
    else session.serverRequests.forward(message, upstream, undefined);
  }

  /** The sessions that may use the server. */
  viewers(server: Server): Session[] {
    return [...this.sessions.values()].filter(
      ({ scope, principal }) => scope.shows(server) && principal.permissions.may('call', server.project.id),
    );
  }

  /** To the client that it belongs to, or to all if it belongs to none. */
  private passNotification(received: ServerMessage): void {
    const { message, server, connection, upstream } = received;
    const isLog = message.method === 'notifications/message';
    const call = callOf(received);
    if (call !== undefined) {
      if (!isLog || call.caller.wantsLog(message)) call.responder.event([message.bytes]);
      return;
    }
    const only = this.onlySession(received);
    const isForAll =
      only === undefined && connection.owner === undefined && upstream.audience().kind === 'everybody';
    if (only === undefined && !isForAll) server.log.add(message.bytes.toString());
    for (const session of isForAll ? this.viewers(server) : only === undefined ? [] : [only]) {
      if (!isLog || session.wantsLog(message)) session.stream.send([message.bytes]);
    }
  }

  /** Undefined unless exactly one client is possible. */
  private onlySession({ server, connection, upstream }: ServerMessage): Session | undefined {
    if (connection.owner !== undefined) return sessionOf(connection.owner);
    const audience = upstream.audience();
    if (audience.kind === 'client') return sessionOf(audience.client);
    if (audience.kind !== 'everybody') return undefined;
    const [only, another] = this.viewers(server);
    return another === undefined ? only : undefined;
  }
}

/** Undefined unless exactly one call is possible. */
function callOf({ upstream, call }: ServerMessage): ClientCall | undefined {
  const found = clientCallOf(call);
  if (found !== undefined) return found;
  const audience = upstream.audience();
  if (audience.kind !== 'calls') return undefined;
  // All belong to one client. A server that waits for the client sends nothing else for that call.
  const calls = audience.calls.flatMap((pending) => clientCallOf(pending) ?? []);
  return calls.findLast(({ isHeld }) => !isHeld) ?? calls.at(-1);
}

function clientCallOf(request: PendingRequest | undefined): ClientCall | undefined {
  const handler = request instanceof Delivery ? request.handler : undefined;
  return handler instanceof ClientCall ? handler : undefined;
}
