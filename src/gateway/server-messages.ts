import { stopping } from '../errors.ts';
import { bytesAt, idBytes } from '../protocol/envelope.ts';
import type { Client } from '../upstreams/request.ts';
import type { Server, ServerMessage } from '../upstreams/server.ts';
import { type ClientCall, clientCallOf } from './client-call.ts';
import type { HeldCalls } from './crossing/held-calls.ts';
import { Session } from './legacy/caller.ts';
import { type Addressee, ask, cancelAsk, decline, declineUnclear } from './legacy/server-requests.ts';
import { passUpdate } from './legacy/subscriptions.ts';
import { passTaskProgress, passTaskStatus } from './legacy/tasks.ts';

/** What servers say and ask by themselves: to the client that it is meant for, never to a wrong one. */
export class ServerWords {
  private readonly sessions: ReadonlyMap<string, Session>;
  private readonly held: HeldCalls;

  constructor(sessions: ReadonlyMap<string, Session>, held: HeldCalls) {
    this.sessions = sessions;
    this.held = held;
  }

  notified(word: ServerMessage): void {
    const { message, replica, connection, upstream } = word;
    switch (message.method) {
      case 'notifications/resources/updated':
        passUpdate(replica, connection, message);
        return;
      case 'notifications/cancelled':
        cancelAsk(upstream, message, this.sessions.values());
        if (message.requestId !== undefined) {
          this.held.withdraw(upstream, bytesAt(message.bytes, message.requestId));
        }
        return;
      case 'notifications/tasks/status':
        passTaskStatus(replica, message, this.sessions.values());
        return;
      case 'notifications/progress':
        passTaskProgress(upstream, message, this.sessions.values());
        return;
      default:
        this.passNotification(word);
    }
  }

  asked(word: ServerMessage): void {
    const { message, server, upstream } = word;
    // The client could not answer any more.
    if (this.held.isClosed) {
      decline(upstream, idBytes(message), stopping());
      return;
    }
    const call = meantCall(word);
    if (call?.caller.era === 'modern') {
      call.ask(message, upstream);
      return;
    }
    const addressee = this.addressee(word, call);
    if (addressee === undefined) declineUnclear(message, upstream, server);
    else ask(message, upstream, addressee);
  }

  /** The clients of the legacy era that may know of a server. */
  viewers(server: Server): Session[] {
    return [...this.sessions.values()].filter(({ scope }) => scope.shows(server.project));
  }

  /** Log lines and the rest: to the client they belong to; to all where they can be about none. */
  private passNotification(word: ServerMessage): void {
    const { message, server, connection, upstream } = word;
    const isLog = message.method === 'notifications/message';
    const call = meantCall(word);
    if (call !== undefined) {
      if (!isLog || call.caller.wantsLog(message)) call.responder.event([message.bytes]);
      return;
    }
    const addressee = this.addressee(word, undefined);
    if (addressee !== undefined) {
      if (!isLog || addressee.session.wantsLog(message)) addressee.session.stream.send([message.bytes]);
    } else if (connection.owner === undefined && upstream.audience().kind === 'everybody') {
      for (const session of this.viewers(server)) {
        if (!isLog || session.wantsLog(message)) session.stream.send([message.bytes]);
      }
    } else {
      server.log.add(message.bytes.toString());
    }
  }

  /** The client of the legacy era that a server's word is meant for, where only one can be. */
  private addressee(
    { server, connection, upstream }: ServerMessage,
    call: ClientCall | undefined,
  ): Addressee | undefined {
    if (call !== undefined) {
      return call.caller instanceof Session ? { session: call.caller, call } : undefined;
    }
    const audience = upstream.audience();
    if (connection.owner !== undefined) return standing(connection.owner);
    if (audience.kind === 'client') return standing(audience.client);
    if (audience.kind !== 'everybody') return undefined;
    const [only, another] = this.viewers(server);
    return another === undefined ? standing(only) : undefined;
  }
}

/** The call that a server's word is meant for, where only one can be. */
function meantCall({ upstream, call: tied }: ServerMessage): ClientCall | undefined {
  const found = clientCallOf(tied);
  if (found !== undefined) return found;
  const audience = upstream.audience();
  if (audience.kind !== 'calls') return undefined;
  // All are of one client. One that waits for the client is not about to say anything.
  const calls = audience.calls.flatMap((call) => clientCallOf(call) ?? []);
  return calls.findLast(({ isHeld }) => !isHeld) ?? calls.at(-1);
}

function standing(client: Client | undefined): Addressee | undefined {
  return client instanceof Session && !client.isClosed ? { session: client, call: undefined } : undefined;
}
