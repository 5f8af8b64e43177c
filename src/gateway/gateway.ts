import { randomUUID } from 'node:crypto';
import type { ListName } from '../catalog/catalog.ts';
import { SwitchboardError, stopping } from '../errors.ts';
import { parseBounded } from '../protocol/bounded-parse.ts';
import { bytesAt, idBytes, idValue, type Message } from '../protocol/envelope.ts';
import { bytesOf, emptyResult, notificationMessage, resultMessage } from '../protocol/jsonrpc.ts';
import type { Group } from '../upstreams/group.ts';
import type { Identity } from '../upstreams/handshake.ts';
import type { Client } from '../upstreams/request.ts';
import type { Origin, Server, Word } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { answerAsk, declineAsks, progressOfAsk, withdrawAsks } from './ask.ts';
import { call, callTask } from './call.ts';
import type { CallDesk } from './call-context.ts';
import type { Incoming, InFlight } from './caller.ts';
import { chooseScope } from './choose-scope.ts';
import { HeldCalls } from './eras/held-calls.ts';
import { RequestStates } from './eras/request-state.ts';
import { StatelessGateway } from './eras/stateless-gateway.ts';
import { follow, followAgain, followElsewhere, followKept, followRegrouped } from './follow.ts';
import type { Follower } from './follower.ts';
import { initializeResult, readInitialize } from './initialize.ts';
import { list } from './lists.ts';
import { LogLevels } from './log-levels.ts';
import { readLevel } from './logging.ts';
import type { CallRecorder } from './records.ts';
import { refuse } from './refuse.ts';
import type { Scope, Scopes } from './scope.ts';
import { ServerWords } from './server-words.ts';
import { type ClientStream, Session } from './session.ts';
import type { SessionKeeper } from './session-keeper.ts';

export interface GatewaySettings {
  identity: Identity;
  /** By what Switchboards in front of us know us in what we say. */
  instance: string;
  maxSessions: number;
  sessionIdleMs: number;
  keepAliveMs: number;
  /** How many calls may wait for clients that were asked for something, and for how long. */
  maxHeldCalls: number;
  inputWaitMs: number;
}

const changedNotifications: Record<ListName, string> = {
  tools: 'notifications/tools/list_changed',
  resources: 'notifications/resources/list_changed',
  templates: 'notifications/resources/list_changed',
  prompts: 'notifications/prompts/list_changed',
};

/** Everything between clients and servers: sessions on one side, scopes with their servers on the other. */
export class Gateway {
  private readonly scopes: Scopes;
  private readonly desk: CallDesk;
  private readonly settings: GatewaySettings;
  private readonly sessions = new Map<string, Session>();
  private readonly words: ServerWords;
  private readonly logLevels: LogLevels;
  /** Clients of the modern era. */
  readonly stateless: StatelessGateway;
  private readonly sweeper: NodeJS.Timeout;
  private readonly keeper: SessionKeeper;
  /** No more requests are taken. */
  isStopping = false;

  constructor(scopes: Scopes, recorder: CallRecorder, keeper: SessionKeeper, settings: GatewaySettings) {
    this.scopes = scopes;
    this.keeper = keeper;
    const { maxHeldCalls, inputWaitMs } = settings;
    const held = new HeldCalls(maxHeldCalls, inputWaitMs);
    this.desk = { recorder, held, states: new RequestStates(inputWaitMs), inputWaitMs };
    this.settings = settings;
    this.words = new ServerWords(this.sessions, held);
    this.logLevels = new LogLevels((server) => this.words.viewers(server));
    this.stateless = new StatelessGateway(scopes, this.desk, settings, {
      louder: (scope, level) => this.logLevels.louder(scope, level),
      release: (client, as) => this.release(client, as),
    });
    this.sweeper = setInterval(() => this.sweep(Date.now()), settings.keepAliveMs);
    this.sweeper.unref();
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

  /** How many clients are there, as far as one can know. */
  get clientCount(): number {
    return this.sessions.size + this.stateless.clientCount;
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
    if (logLevel !== undefined) this.logLevels.changed(session);
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
    this.release(session);
    if (session.logLevel !== undefined) this.logLevels.changed(session);
  }

  /** One message of a client. Requests are answered through the outlet, in time. */
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

  /** Tells every client of this scope, once for each kind of list. */
  announce(scope: Scope, lists: readonly ListName[]): void {
    for (const method of new Set(lists.map((name) => changedNotifications[name]))) {
      const notification = notificationMessage(method);
      for (const follower of this.followers()) {
        if (follower.scope === scope) follower.announce(method, notification);
      }
    }
  }

  /** A project is gone, and with it everything that its clients came for. What they have under way is finished. */
  endScope(scope: Scope): void {
    for (const { followed } of this.followers()) {
      for (const [key, { project }] of followed) if (project === scope.project?.id) followed.delete(key);
    }
    for (const session of this.sessions.values()) {
      if (session.scope === scope) session.leave(() => this.end(session));
    }
    this.stateless.endScope(scope);
  }

  /** What clients have asked of a server is asked on its new connection too. */
  connected({ server, replica, connection }: Origin): void {
    const { owner } = connection;
    void this.logLevels.tell(server, connection);
    // The shared one of a server that gives each client its own tells nobody of anything.
    if (owner === undefined && replica.isolates) return;
    const followers = [...this.followers()].filter(
      ({ identity }) => owner === undefined || identity === owner,
    );
    followAgain(server, this.groupOf(server), replica, connection, followers);
  }

  /** What the server has asked clients need not be answered any more. */
  disconnected({ server, replica }: Origin, upstream: Upstream): void {
    withdrawAsks(upstream, this.sessions.values());
    const group = this.groupOf(server);
    const isGone = !replica.isLive || replica.condition.state === 'stopped';
    if (group !== undefined && isGone) followElsewhere(group, replica, this.followers());
  }

  /** Servers of a project have come, gone, or changed groups. */
  regrouped(servers: Servers): void {
    followRegrouped(servers, this.followers());
  }

  /** A server says something by itself. */
  notified(word: Word): void {
    this.words.notified(word);
  }

  /** A server asks something. */
  asked(word: Word): void {
    this.words.asked(word);
  }

  /**
   * Takes no more requests. What waits for a client fails at once, and streams are closed that nothing is under way for.
   * Settles when nothing is under way any more.
   */
  drain(): Promise<void> {
    this.isStopping = true;
    this.desk.held.close();
    return new Promise((resolve) => {
      const check = () => {
        if (this.requests().length === 0) resolve();
      };
      this.stateless.drain(check);
      for (const request of this.requests()) if (request.awaitsClient) request.fail(stopping());
      for (const session of this.sessions.values()) {
        session.leave(() => {
          session.stream.close();
          check();
        });
      }
      check();
    });
  }

  /** The servers whose answers are awaited, one name for each call; undefined where it is none in particular. */
  underWay(): (string | undefined)[] {
    return this.requests().map(({ group }) => group?.name);
  }

  close(): void {
    clearInterval(this.sweeper);
    // The last first: a slot that is free again must not go to one that is about to fail.
    for (const request of this.requests().toReversed()) request.fail(stopping());
    for (const session of [...this.sessions.values()]) this.end(session);
    this.stateless.close();
    this.desk.held.close();
  }

  private request(incoming: Incoming<Session>): void {
    if (this.isStopping) throw stopping();
    const { caller: session, message, outlet, projects } = incoming;
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
        this.logLevels.changed(session);
        this.note(session);
        outlet.answer(resultMessage(idBytes(message), emptyResult));
        return;
      case 'ping':
        outlet.answer(resultMessage(idBytes(message), emptyResult));
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

  private requests(): InFlight[] {
    const ofSessions = [...this.sessions.values()].flatMap(({ requests }) => [...requests]);
    return [...ofSessions, ...this.stateless.requests()];
  }

  private note(session: Session): void {
    if (!session.isKept || session.isClosed) return;
    const { id, facts, scope } = session;
    this.keeper.keep(id, () => {
      const { logLevel, listedAt, followed } = session;
      return {
        project: scope.project?.id,
        facts,
        logLevel,
        listedAt,
        followed: within(followed.keys(), KEPT_CHARACTERS),
      };
    });
  }

  /** Everybody who is told of changes. */
  private *followers(): Generator<Follower> {
    yield* this.sessions.values();
    yield* this.stateless.listeners;
  }

  private release(client: Client, as?: Client): void {
    for (const server of this.scopes.all.servers()) server.release(client, as);
  }

  private groupOf(server: Server): Group | undefined {
    return this.scopes.of(server.project.id)?.project?.servers.group(server.group);
  }

  private passRootsChanged(session: Session): void {
    for (const server of session.scope.servers()) {
      server.rootsChanged(session, this.words.viewers(server).length === 1);
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

  private sweep(now: number): void {
    for (const session of this.sessions.values()) {
      const isIdle = !session.isBusy && !session.stream.isOpen;
      if (isIdle && now - session.lastSeen > this.settings.sessionIdleMs) this.end(session);
      else session.keepAlive();
    }
    this.stateless.sweep(now);
  }
}

/** So much of what a session follows is known after a restart. */
const KEPT_CHARACTERS = 64 * 1024;

/** As many texts as have so many characters together. */
function within(texts: Iterable<string>, characters: number): string[] {
  const taken: string[] = [];
  let left = characters;
  for (const text of texts) {
    left -= text.length;
    if (left < 0) break;
    taken.push(text);
  }
  return taken;
}

function reasonOf({ bytes, params }: Message): string | undefined {
  const { reason } = parseBounded(bytesAt(bytes, params!).toString()) as { reason?: unknown };
  return typeof reason === 'string' ? reason : undefined;
}
