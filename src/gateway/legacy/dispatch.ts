import { randomUUID } from 'node:crypto';
import { SwitchboardError, stopping } from '../../errors.ts';
import type { Principal, Sender } from '../../identity/principal.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import { bytesOf, emptyResult, notificationMessage, resultMessage } from '../../protocol/jsonrpc.ts';
import { bytesAt, idBytes, idValue, type Message } from '../../protocol/message.ts';
import type { Client } from '../../upstreams/request.ts';
import type { Server } from '../../upstreams/server.ts';
import { failForbidden } from '../authorize.ts';
import { call } from '../call.ts';
import type { ClientSettings, Incoming } from '../caller.ts';
import type { CallServices } from '../client-call.ts';
import { enter } from '../enter.ts';
import { changedNotifications, isList, list } from '../lists.ts';
import { readLevel } from '../logging.ts';
import { isCall } from '../resolve.ts';
import { reject } from '../respond.ts';
import type { InFlight } from '../responder.ts';
import type { AllScopes, Scope } from '../scope.ts';
import { callLegacyTask } from '../task-calls.ts';
import { type ClientStream, Session } from './caller.ts';
import { initializeResult, readInitialize } from './greeting.ts';
import { type SessionPersistence, stateOf, storedOwner } from './persistence.ts';
import { sessionsInTheWay } from './room.ts';
import { changeSubscription, dropForbidden, resubscribe } from './subscriptions.ts';

interface LegacyEvents {
  /** Frees the session's resources at servers. */
  release(client: Client): void;
  levelChanged(session: Session): void;
  viewers(server: Server): readonly Session[];
}

export class LegacyGateway {
  private readonly scopes: AllScopes;
  readonly services: CallServices;
  private readonly settings: ClientSettings;
  private readonly persistence: SessionPersistence;
  private readonly events: LegacyEvents;
  readonly sessions = new Map<string, Session>();
  isStopping = false;

  constructor(
    scopes: AllScopes,
    services: CallServices,
    persistence: SessionPersistence,
    settings: ClientSettings,
    events: LegacyEvents,
  ) {
    this.scopes = scopes;
    this.services = services;
    this.persistence = persistence;
    this.settings = settings;
    this.events = events;
  }

  get clientCount(): number {
    return this.sessions.size;
  }

  /** Not found for other principals, and for requests that name another project than the session's. */
  session(id: string, principal: Principal, projects: Incoming['projects']): Session | undefined {
    const session = this.sessions.get(id);
    if (session === undefined || session.principal !== principal) return undefined;
    if (session.isLeaving && !this.isStopping) return undefined;
    if (projects !== undefined && session.scope.project !== undefined) {
      const scopes = this.scopes.for(principal.permissions);
      if (projects.some((name) => scopes.of(name) !== session.scope)) return undefined;
    }
    session.lastSeen = Date.now();
    return session;
  }

  /** Returns the response to the initialize request. */
  open(
    message: Message,
    sender: Sender,
    projects: Incoming['projects'],
    openStream: (facts: Session['facts']) => ClientStream,
  ): { session: Session; response: Buffer[] } {
    if (this.isStopping) throw stopping();
    const facts = readInitialize(message);
    const { principal } = sender;
    const scope = enter(this.scopes, this.services, sender, undefined, { message, projects });
    this.makeRoom(principal);
    const session = new Session(randomUUID(), principal, facts, scope, openStream(facts));
    this.sessions.set(session.id, session);
    const result = initializeResult(facts, this.settings, scope);
    return { session, response: resultMessage(idBytes(message), bytesOf(result)) };
  }

  persist(session: Session): void {
    session.isPersisted = true;
    session.whenListed = () => this.save(session);
    this.save(session);
  }

  /** Restores a session from before a restart. */
  restore(
    id: string,
    principal: Principal,
    projects: Incoming['projects'],
    openStream: (facts: Session['facts']) => ClientStream,
  ): Session | undefined {
    const persisted = this.persistence.take(id, storedOwner(principal));
    if (persisted === undefined) return undefined;
    const { project, facts, logLevel } = persisted;
    const scopes = this.scopes.for(principal.permissions);
    const scope = project === undefined ? scopes.all : scopes.of(project);
    if (scope === undefined) return undefined;
    this.makeRoom(principal);
    const session = new Session(id, principal, facts, scope, openStream(facts));
    session.isPersisted = true;
    session.listedAt = persisted.listedAt;
    session.whenListed = () => this.save(session);
    this.sessions.set(id, session);
    session.logLevel = logLevel;
    if (logLevel !== undefined) this.events.levelChanged(session);
    resubscribe(scopes, session, persisted.followed);
    // The client may have missed changes.
    for (const method of new Set(Object.values(changedNotifications)))
      session.listChanged(method, notificationMessage(method));
    return this.session(id, principal, projects);
  }

  /** Resolves when ended sessions are deleted from the database, or after a while; undefined if none is pending. */
  ended(): Promise<void> | undefined {
    return this.persistence.deleted();
  }

  end(session: Session): void {
    if (!this.sessions.delete(session.id)) return;
    if (session.isPersisted) this.persistence.delete(session.id);
    session.close();
    this.events.release(session);
    if (session.logLevel !== undefined) this.events.levelChanged(session);
  }

  receive(incoming: Incoming<Session>): void {
    const { caller: session, message } = incoming;
    switch (message.kind) {
      case 'request':
        try {
          this.request(incoming);
        } catch (error) {
          reject(incoming, error);
        }
        return;
      case 'notification':
        this.notification(session, message);
        return;
      default:
        session.serverRequests.respond(message);
    }
  }

  sweep(now: number): void {
    for (const session of this.sessions.values()) {
      const isIdle = !session.isBusy && !session.stream.isOpen;
      if (isIdle && now - session.lastSeen > this.settings.sessionIdleMs) this.end(session);
      else session.keepAlive();
    }
  }

  /** Ends the sessions of a removed project when their requests are finished. */
  endScope(scope: Scope): void {
    for (const session of this.sessions.values()) {
      if (session.scope === scope) session.leave(() => this.end(session));
    }
  }

  /** Ends the sessions of a principal that has ended, with this error for each request. */
  endPrincipal(principal: Principal, error: SwitchboardError): void {
    for (const session of [...this.sessions.values()]) {
      if (session.principal !== principal) continue;
      for (const request of [...session.requests].toReversed()) request.fail(error);
      this.end(session);
    }
  }

  /** Sessions continue with what their principals may use now, or end if their project has become invisible. */
  permissionsChanged(principals: ReadonlySet<Principal>): void {
    for (const session of [...this.sessions.values()]) {
      const { principal } = session;
      if (!principals.has(principal)) continue;
      failForbidden(session.requests, principal.permissions);
      const scopes = this.scopes.for(principal.permissions);
      const { project } = session.scope;
      const scope = project === undefined ? scopes.all : scopes.of(project.id);
      if (scope === undefined) {
        session.leave(() => this.end(session));
        continue;
      }
      session.scope = scope;
      dropForbidden(session);
      for (const method of new Set(Object.values(changedNotifications)))
        session.listChanged(method, notificationMessage(method));
    }
  }

  disconnect(principals: ReadonlySet<Principal>): void {
    for (const session of [...this.sessions.values()])
      if (principals.has(session.principal)) session.stream.disconnect();
  }

  /** Rejects new requests, and closes the stream of each idle session. Calls `whenIdle` whenever a session becomes idle. */
  drain(whenIdle: () => void): void {
    this.isStopping = true;
    for (const session of this.sessions.values()) {
      session.leave(() => {
        session.stream.close();
        whenIdle();
      });
    }
  }

  *requests(): Generator<InFlight> {
    for (const { requests } of this.sessions.values()) yield* requests;
  }

  close(): void {
    for (const session of [...this.sessions.values()]) this.end(session);
  }

  private request(incoming: Incoming<Session>): void {
    if (this.isStopping) throw stopping();
    const { caller: session, address, message, responder } = incoming;
    const sender = { principal: session.principal, address };
    const scope = enter(this.scopes, this.services, sender, session.scope, incoming);
    if (isCall(message.method)) {
      call(scope, incoming, this.services);
      return;
    }
    if (isList(message.method)) {
      list(scope, incoming, this.settings.instance);
      return;
    }
    switch (message.method) {
      case 'tasks/get':
      case 'tasks/result':
      case 'tasks/cancel':
        callLegacyTask(scope, incoming, this.services);
        return;
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        changeSubscription(scope, incoming, this.services, () => this.save(session));
        return;
      case 'logging/setLevel':
        session.logLevel = readLevel(message);
        this.events.levelChanged(session);
        this.save(session);
        responder.respond(resultMessage(idBytes(message), emptyResult));
        return;
      case 'ping':
        responder.respond(resultMessage(idBytes(message), emptyResult));
        return;
      case 'initialize':
        throw new SwitchboardError('invalid_request', 'The session is already initialized.');
      default:
        throw new SwitchboardError('method_not_found', `Unknown method: ${message.method}`);
    }
  }

  private notification(session: Session, message: Message): void {
    switch (message.method) {
      case 'notifications/cancelled': {
        const id = message.requestId && idValue(message.bytes, message.requestId);
        if (id !== undefined) session.cancel(id, reasonOf(message));
        return;
      }
      case 'notifications/progress':
        session.serverRequests.progress(message);
        return;
      case 'notifications/roots/list_changed':
        this.passRootsChanged(session);
    }
  }

  private save(session: Session): void {
    if (!session.isPersisted || session.isClosed) return;
    this.persistence.save(session.id, () => stateOf(session));
  }

  private passRootsChanged(session: Session): void {
    for (const server of session.scope.servers()) {
      server.rootsChanged(session, this.events.viewers(server).length === 1);
    }
  }

  private makeRoom(principal: Principal): void {
    const { sessions, settings } = this;
    for (const session of sessionsInTheWay(sessions.values(), principal, settings)) this.end(session);
  }
}

function reasonOf({ bytes, params }: Message): string | undefined {
  const { reason } = parseBounded(bytesAt(bytes, params!).toString()) as { reason?: unknown };
  return typeof reason === 'string' ? reason : undefined;
}
