import { randomUUID } from 'node:crypto';
import type { ListName } from '../catalog/catalog.ts';
import { SwitchboardError } from '../errors.ts';
import { bytesAt, idBytes, idValue, type Message } from '../protocol/envelope.ts';
import { bytesOf, emptyResult, notificationMessage, resultMessage } from '../protocol/jsonrpc.ts';
import type { Connection, Word } from '../upstreams/connection.ts';
import type { Group } from '../upstreams/group.ts';
import type { Identity } from '../upstreams/handshake.ts';
import type { Replica } from '../upstreams/replica.ts';
import type { Server } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { Client, Upstream } from '../upstreams/upstream.ts';
import {
  type Addressee,
  answerAsk,
  ask,
  cancelAsk,
  declineAsks,
  progressOfAsk,
  rootsChanged,
  withdrawAsks,
} from './ask.ts';
import { call, callTask, clientCallOf } from './call.ts';
import { chooseScope } from './choose-scope.ts';
import { follow, followAgain, followElsewhere, followRegrouped, passUpdate } from './follow.ts';
import { initializeResult, readInitialize } from './initialize.ts';
import { list } from './lists.ts';
import { isWanted, mostTalkative, readLevel } from './logging.ts';
import type { CallRecorder } from './records.ts';
import { refuse } from './refuse.ts';
import type { Scope, Scopes } from './scope.ts';
import { type ClientStream, type Incoming, Session } from './session.ts';
import { passTaskProgress, passTaskStatus } from './tasks.ts';

export interface GatewaySettings {
  identity: Identity;
  maxSessions: number;
  sessionIdleMs: number;
  keepAliveMs: number;
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
  private readonly recorder: CallRecorder;
  private readonly settings: GatewaySettings;
  private readonly sessions = new Map<string, Session>();
  private readonly sweeper: NodeJS.Timeout;

  constructor(scopes: Scopes, recorder: CallRecorder, settings: GatewaySettings) {
    this.scopes = scopes;
    this.recorder = recorder;
    this.settings = settings;
    this.sweeper = setInterval(() => this.sweep(Date.now()), settings.keepAliveMs);
    this.sweeper.unref();
  }

  /** The session of that id. One that was opened for a project is not there for requests that name another. */
  session(id: string, projects: Incoming['projects']): Session | undefined {
    const session = this.sessions.get(id);
    if (session === undefined || session.isLeaving) return undefined;
    const { scope } = session;
    const isElsewhere = (name: string) => scope.project !== undefined && this.scopes.of(name) !== scope;
    if (projects?.some(isElsewhere)) return undefined;
    session.lastSeen = Date.now();
    return session;
  }

  get sessionCount(): number {
    return this.sessions.size;
  }

  /** Opens a session for the client that sent this initialize request. The answer is the caller's to send. */
  open(
    message: Message,
    projects: Incoming['projects'],
    openStream: (facts: Session['facts']) => ClientStream,
  ): { session: Session; answer: Buffer[] } {
    const facts = readInitialize(message);
    const scope = chooseScope(this.scopes, this.scopes.all, projects, message);
    this.makeRoom();
    const session = new Session(randomUUID(), facts, scope, openStream(facts));
    this.sessions.set(session.id, session);
    const result = initializeResult(facts, this.settings.identity, scope);
    return { session, answer: resultMessage(idBytes(message), bytesOf(result)) };
  }

  end(session: Session): void {
    if (!this.sessions.delete(session.id)) return;
    declineAsks(session.close());
    for (const server of this.scopes.all.servers()) server.release(session);
    if (session.logLevel !== undefined) this.passLogLevel(session);
  }

  /** One message of a client. Requests are answered through the outlet, in time. */
  receive(incoming: Incoming): void {
    const { session, message } = incoming;
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
      const notification = [notificationMessage(method)];
      for (const session of this.sessions.values()) {
        if (session.scope === scope) session.stream.send(notification);
      }
    }
  }

  /** A project is gone, and with it everything that its clients came for. What they have under way is finished. */
  endScope(scope: Scope): void {
    for (const session of this.sessions.values()) {
      for (const [key, { project }] of session.followed) {
        if (project === scope.project?.id) session.followed.delete(key);
      }
      if (session.scope === scope) session.leave(() => this.end(session));
    }
  }

  /** What clients have asked of a server is asked on its new connection too. */
  connected(server: Server, replica: Replica, connection: Connection): void {
    const { owner } = connection;
    connection.setLogLevel(owner instanceof Session ? owner.logLevel : this.logLevelFor(server));
    const group = this.groupOf(server);
    if (owner instanceof Session) followAgain(server, group, replica, connection, [owner]);
    else if (!replica.isolates) followAgain(server, group, replica, connection, this.sessions.values());
  }

  /** What the server has asked clients need not be answered any more. */
  disconnected(server: Server, replica: Replica, upstream: Upstream): void {
    withdrawAsks(upstream, this.sessions.values());
    const group = this.groupOf(server);
    const isGone = !replica.isLive || replica.condition.state === 'stopped';
    if (group !== undefined && isGone) followElsewhere(group, replica, this.sessions.values());
  }

  /** Servers of a project have come, gone, or changed groups. */
  regrouped(servers: Servers): void {
    followRegrouped(servers, this.sessions.values());
  }

  /** A server says something by itself. */
  notified(server: Server, replica: Replica, word: Word): void {
    switch (word.message.method) {
      case 'notifications/resources/updated':
        passUpdate(replica, word.connection, word.message);
        return;
      case 'notifications/cancelled':
        cancelAsk(word.upstream, word.message, this.sessions.values());
        return;
      case 'notifications/tasks/status':
        passTaskStatus(replica, word.message, this.sessions.values());
        return;
      case 'notifications/progress':
        passTaskProgress(word.upstream, word.message, this.sessions.values());
        return;
      default:
        this.passNotification(server, word);
    }
  }

  /** A server asks something. */
  asked(server: Server, word: Word): void {
    ask(word.message, word.upstream, server.name, this.addressee(server, word));
  }

  close(): void {
    clearInterval(this.sweeper);
    for (const session of [...this.sessions.values()]) this.end(session);
  }

  private request(incoming: Incoming): void {
    const { session, message, outlet, projects } = incoming;
    const scope = chooseScope(this.scopes, session.scope, projects, message);
    switch (message.method) {
      case 'tools/call':
      case 'prompts/get':
      case 'resources/read':
      case 'completion/complete':
        call(scope, incoming, this.recorder);
        return;
      case 'tasks/get':
      case 'tasks/result':
      case 'tasks/cancel':
        callTask(incoming, this.recorder);
        return;
      case 'tools/list':
      case 'resources/list':
      case 'resources/templates/list':
      case 'prompts/list':
        list(scope, incoming);
        return;
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        follow(scope, incoming);
        return;
      case 'logging/setLevel':
        session.logLevel = readLevel(message);
        this.passLogLevel(session);
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

  /** Log lines and the rest: to the client they belong to; to all where they can be about none; never to a wrong one. */
  private passNotification(server: Server, word: Word): void {
    const { message, connection, upstream } = word;
    const isLog = message.method === 'notifications/message';
    const addressee = this.addressee(server, word);
    if (addressee !== undefined) {
      if (isLog && !isWanted(message, addressee.session.logLevel)) return;
      if (addressee.outlet === undefined) addressee.session.stream.send([message.bytes]);
      else addressee.outlet.event([message.bytes]);
    } else if (connection.owner === undefined && upstream.audience().kind === 'everybody') {
      for (const session of this.viewers(server)) {
        if (!isLog || isWanted(message, session.logLevel)) session.stream.send([message.bytes]);
      }
    } else {
      server.log.add(message.bytes.toString());
    }
  }

  /** The client that a server's word is meant for, where only one can be. */
  private addressee(server: Server, { connection, upstream, call: tied }: Word): Addressee | undefined {
    const audience = upstream.audience();
    const meant = clientCallOf(tied) ?? clientCallOf(audience.kind === 'call' ? audience.call : undefined);
    if (meant !== undefined) return { session: meant.client, outlet: meant.outlet };
    if (connection.owner !== undefined) return this.standing(connection.owner);
    if (audience.kind === 'client') return this.standing(audience.client);
    if (audience.kind !== 'everybody') return undefined;
    const [only, another] = this.viewers(server);
    return another === undefined ? this.standing(only) : undefined;
  }

  /** The clients that may know of a server. */
  private viewers(server: Server): Session[] {
    return [...this.sessions.values()].filter(({ scope }) => scope.shows(server.project));
  }

  private groupOf(server: Server): Group | undefined {
    return this.scopes.of(server.project.id)?.project?.servers.group(server.group);
  }

  private logLevelFor(server: Server): string | undefined {
    return mostTalkative(this.viewers(server));
  }

  private standing(client: Client | undefined): Addressee | undefined {
    return client instanceof Session && !client.isClosed ? { session: client, outlet: undefined } : undefined;
  }

  private passLogLevel(session: Session): void {
    for (const server of session.scope.servers()) {
      const shared = this.logLevelFor(server);
      for (const connection of connectionsOf(server, session)) {
        connection.setLogLevel(connection.owner === undefined ? shared : session.logLevel);
      }
    }
  }

  private passRootsChanged(session: Session): void {
    for (const server of session.scope.servers()) {
      const isAlone = this.viewers(server).length === 1;
      for (const { owner, current } of connectionsOf(server, session)) {
        if (owner === session || isAlone) current?.upstream.send(rootsChanged);
      }
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
  }
}

/** The connections that a client's requests may take: those that all share, and its own. */
function connectionsOf({ replicas }: Server, session: Session): Connection[] {
  return replicas.flatMap((replica) => replica.connectionsOf(session));
}

function reasonOf({ bytes, params }: Message): string | undefined {
  const { reason } = JSON.parse(bytesAt(bytes, params!).toString()) as { reason?: unknown };
  return typeof reason === 'string' ? reason : undefined;
}
