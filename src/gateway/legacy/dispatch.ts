import { randomUUID } from 'node:crypto';
import { SwitchboardError, stopping } from '../../errors.ts';
import { parseBounded } from '../../protocol/bounded-parse.ts';
import { bytesAt, idBytes, idValue, type Message } from '../../protocol/envelope.ts';
import { bytesOf, emptyResult, notificationMessage, resultMessage } from '../../protocol/jsonrpc.ts';
import type { Identity } from '../../upstreams/handshake.ts';
import type { Client } from '../../upstreams/request.ts';
import type { Server } from '../../upstreams/server.ts';
import { call, callTask } from '../call.ts';
import type { CallDesk } from '../call-context.ts';
import type { Incoming, InFlight } from '../caller.ts';
import { chooseScope } from '../choose-scope.ts';
import { changedNotifications } from '../list-changes.ts';
import { list } from '../lists.ts';
import { readLevel } from '../logging.ts';
import { refuse } from '../refuse.ts';
import type { Scope, Scopes } from '../scope.ts';
import { type ClientStream, Session } from './caller.ts';
import { initializeResult, readInitialize } from './greeting.ts';
import { answerAsk, declineAsks, progressOfAsk } from './server-requests.ts';
import { type SessionKeeper, stateToKeep } from './session-keeper.ts';
import { follow, followKept } from './subscriptions.ts';

export interface LegacySettings {
  identity: Identity;
  instance: string;
  maxSessions: number;
  sessionIdleMs: number;
}

interface LegacyEvents {
  /** What a session has at servers ends. */
  release(client: Client): void;
  /** How loud a session wants servers to be has changed. */
  levelChanged(session: Session): void;
  /** The sessions that see a server. */
  viewers(server: Server): readonly Session[];
}

/** Clients of the legacy era: each has a session, and its requests belong to that. */
export class LegacyGateway {
  private readonly scopes: Scopes;
  private readonly desk: CallDesk;
  private readonly settings: LegacySettings;
  private readonly keeper: SessionKeeper;
  private readonly events: LegacyEvents;
  readonly sessions = new Map<string, Session>();
  /** No more requests are taken. */
  isStopping = false;

  constructor(
    scopes: Scopes,
    desk: CallDesk,
    keeper: SessionKeeper,
    settings: LegacySettings,
    events: LegacyEvents,
  ) {
    this.scopes = scopes;
    this.desk = desk;
    this.keeper = keeper;
    this.settings = settings;
    this.events = events;
  }

  get clientCount(): number {
    return this.sessions.size;
  }

  /** The session of that id. One that was opened for a project is not there for requests that name another. */
  session(id: string, projects: Incoming['projects']): Session | undefined {
    const session = this.sessions.get(id);
    if (session === undefined || (session.isLeaving && !this.isStopping)) return undefined;
    const { scope } = session;
    const isElsewhere = (name: string) => scope.project !== undefined && this.scopes.of(name) !== scope;
    if (projects?.some(isElsewhere)) return undefined;
    session.lastSeen = Date.now();
    return session;
  }

  /** Opens a session for the client that sent this initialize request. The answer is the caller's to send. */
  open(
    message: Message,
    projects: Incoming['projects'],
    openStream: (facts: Session['facts']) => ClientStream,
  ): { session: Session; answer: Buffer[] } {
    if (this.isStopping) throw stopping();
    const facts = readInitialize(message);
    const scope = chooseScope(this.scopes, this.scopes.all, projects, message);
    this.makeRoom();
    const session = new Session(randomUUID(), facts, scope, openStream(facts));
    this.sessions.set(session.id, session);
    const result = initializeResult(facts, this.settings, scope);
    return { session, answer: resultMessage(idBytes(message), bytesOf(result)) };
  }

  /** The session is known after a restart too, from now on. */
  keep(session: Session): void {
    session.isKept = true;
    session.whenListed = () => this.note(session);
    this.note(session);
  }

  /** A client comes with a session of the time before this start. */
  revive(
    id: string,
    projects: Incoming['projects'],
    openStream: (facts: Session['facts']) => ClientStream,
  ): Session | undefined {
    const kept = this.keeper.recall(id);
    if (kept === undefined) return undefined;
    const { project, facts, logLevel } = kept;
    const scope = project === undefined ? this.scopes.all : this.scopes.of(project);
    if (scope === undefined) return undefined;
    this.makeRoom();
    const session = new Session(id, facts, scope, openStream(facts));
    session.isKept = true;
    session.listedAt = kept.listedAt;
    session.whenListed = () => this.note(session);
    this.sessions.set(id, session);
    session.logLevel = logLevel;
    if (logLevel !== undefined) this.events.levelChanged(session);
    followKept(this.scopes, session, kept.followed);
    // Nobody knows what it missed.
    for (const method of new Set(Object.values(changedNotifications)))
      session.announce(method, notificationMessage(method));
    return this.session(id, projects);
  }

  /** Settles when the sessions that were ended are gone for good, or after a while; undefined where they are already. */
  ended(): Promise<void> | undefined {
    return this.keeper.forgotten();
  }

  end(session: Session): void {
    if (!this.sessions.delete(session.id)) return;
    if (session.isKept) this.keeper.forget(session.id);
    declineAsks(session.close());
    this.events.release(session);
    if (session.logLevel !== undefined) this.events.levelChanged(session);
  }

  /** One message of a client. Requests are answered through the responder, in time. */
  receive(incoming: Incoming<Session>): void {
    const { caller: session, message } = incoming;
    switch (message.kind) {
      case 'request':
        try {
          this.request(incoming);
        } catch (error) {
          refuse(incoming, error);
        }
        return;
      case 'notification':
        this.notification(session, message);
        return;
      default:
        answerAsk(session, message);
    }
  }

  sweep(now: number): void {
    for (const session of this.sessions.values()) {
      const isIdle = !session.isBusy && !session.stream.isOpen;
      if (isIdle && now - session.lastSeen > this.settings.sessionIdleMs) this.end(session);
      else session.keepAlive();
    }
  }

  /** A project is gone, and with it everything that its clients came for. What they have under way is finished. */
  endScope(scope: Scope): void {
    for (const session of this.sessions.values()) {
      if (session.scope === scope) session.leave(() => this.end(session));
    }
  }

  /** Takes no more requests, and closes streams that nothing is under way for. Calls `whenIdle` for each session that has nothing left. */
  drain(whenIdle: () => void): void {
    this.isStopping = true;
    for (const session of this.sessions.values()) {
      session.leave(() => {
        session.stream.close();
        whenIdle();
      });
    }
  }

  /** Everything under way. */
  *requests(): Generator<InFlight> {
    for (const { requests } of this.sessions.values()) yield* requests;
  }

  close(): void {
    for (const session of [...this.sessions.values()]) this.end(session);
  }

  private request(incoming: Incoming<Session>): void {
    if (this.isStopping) throw stopping();
    const { caller: session, message, responder, projects } = incoming;
    const scope = chooseScope(this.scopes, session.scope, projects, message);
    switch (message.method) {
      case 'tools/call':
      case 'prompts/get':
      case 'resources/read':
      case 'completion/complete':
        call(scope, incoming, this.desk);
        return;
      case 'tasks/get':
      case 'tasks/result':
      case 'tasks/cancel':
        callTask(scope, incoming, this.desk);
        return;
      case 'tools/list':
      case 'resources/list':
      case 'resources/templates/list':
      case 'prompts/list':
        list(scope, incoming, this.settings.instance);
        return;
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        follow(scope, incoming, () => this.note(session));
        return;
      case 'logging/setLevel':
        session.logLevel = readLevel(message);
        this.events.levelChanged(session);
        this.note(session);
        responder.respond(resultMessage(idBytes(message), emptyResult));
        return;
      case 'ping':
        responder.respond(resultMessage(idBytes(message), emptyResult));
        return;
      case 'initialize':
        throw new SwitchboardError('invalid_request', 'The session is initialized already.');
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
        progressOfAsk(session, message);
        return;
      case 'notifications/roots/list_changed':
        this.passRootsChanged(session);
    }
  }

  private note(session: Session): void {
    if (!session.isKept || session.isClosed) return;
    this.keeper.keep(session.id, () => stateToKeep(session));
  }

  private passRootsChanged(session: Session): void {
    for (const server of session.scope.servers()) {
      server.rootsChanged(session, this.events.viewers(server).length === 1);
    }
  }

  /** At the limit, the session that was silent for longest and that nobody listens on makes room. */
  private makeRoom(): void {
    if (this.sessions.size < this.settings.maxSessions) return;
    let oldest: Session | undefined;
    for (const session of this.sessions.values()) {
      if (session.isBusy || session.stream.isOpen) continue;
      if (oldest === undefined || session.lastSeen < oldest.lastSeen) oldest = session;
    }
    if (oldest === undefined) {
      const { maxSessions } = this.settings;
      throw new SwitchboardError(
        'too_many_sessions',
        `All ${maxSessions} sessions are in use (setting maxSessions).`,
      );
    }
    this.end(oldest);
  }
}

function reasonOf({ bytes, params }: Message): string | undefined {
  const { reason } = parseBounded(bytesAt(bytes, params!).toString()) as { reason?: unknown };
  return typeof reason === 'string' ? reason : undefined;
}
