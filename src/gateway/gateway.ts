import { randomUUID } from 'node:crypto';
import type { ListName } from '../catalog/catalog.ts';
import { SwitchboardError } from '../errors.ts';
import { bytesAt, idBytes, idValue, type Message } from '../protocol/envelope.ts';
import { bytesOf, emptyResult, resultMessage } from '../protocol/jsonrpc.ts';
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
  declineUnclear,
  progressOfAsk,
  rootsChanged,
  withdrawAsks,
} from './ask.ts';
import { call, callTask } from './call.ts';
import type { Incoming } from './caller.ts';
import { chooseScope } from './choose-scope.ts';
import { type CallDesk, type ClientCall, clientCallOf } from './client-call.ts';
import { HeldCalls } from './eras/held-calls.ts';
import { RequestStates } from './eras/request-state.ts';
import { StatelessGateway } from './eras/stateless-gateway.ts';
import { follow, followAgain, followElsewhere, followRegrouped, passUpdate } from './follow.ts';
import type { Follower } from './follower.ts';
import { initializeResult, readInitialize } from './initialize.ts';
import { list } from './lists.ts';
import { mostTalkative, readLevel } from './logging.ts';
import type { CallRecorder } from './records.ts';
import { refuse } from './refuse.ts';
import type { Scope, Scopes } from './scope.ts';
import { type ClientStream, Session } from './session.ts';
import { passTaskProgress, passTaskStatus } from './tasks.ts';

export interface GatewaySettings {
  identity: Identity;
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
  /** The loudest that clients of the modern era have wanted each server to be. */
  private readonly loudest = new WeakMap<Server, string>();
  /** Clients of the modern era. */
  readonly stateless: StatelessGateway;
  private readonly sweeper: NodeJS.Timeout;

  constructor(scopes: Scopes, recorder: CallRecorder, settings: GatewaySettings) {
    this.scopes = scopes;
    const { maxHeldCalls, inputWaitMs } = settings;
    const held = new HeldCalls(maxHeldCalls, inputWaitMs);
    this.desk = { recorder, held, states: new RequestStates(inputWaitMs), inputWaitMs };
    this.settings = settings;
    this.stateless = new StatelessGateway(scopes, this.desk, settings, {
      louder: (scope, level) => this.louder(scope, level),
      release: (client) => this.release(client),
    });
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
    this.release(session);
    if (session.logLevel !== undefined) this.passLogLevel(session);
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
      for (const follower of this.followers()) if (follower.scope === scope) follower.announce(method);
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
  connected(server: Server, replica: Replica, connection: Connection): void {
    const { owner } = connection;
    connection.setLogLevel(owner instanceof Session ? owner.logLevel : this.logLevelFor(server));
    const group = this.groupOf(server);
    if (owner instanceof Session) followAgain(server, group, replica, connection, [owner]);
    else if (!replica.isolates) followAgain(server, group, replica, connection, this.followers());
  }

  /** What the server has asked clients need not be answered any more. */
  disconnected(server: Server, replica: Replica, upstream: Upstream): void {
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
  notified(server: Server, replica: Replica, word: Word): void {
    switch (word.message.method) {
      case 'notifications/resources/updated':
        passUpdate(replica, word.connection, word.message);
        return;
      case 'notifications/cancelled':
        cancelAsk(word.upstream, word.message, this.sessions.values());
        this.withdrawn(word);
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
    const { message, upstream } = word;
    const meant = this.meantCall(word);
    const addressee = this.addressee(server, word);
    if (meant?.caller.era === 'modern') meant.ask(message, upstream);
    else if (addressee !== undefined) ask(message, upstream, addressee);
    else declineUnclear(message, upstream, server.name);
  }

  close(): void {
    clearInterval(this.sweeper);
    for (const session of [...this.sessions.values()]) this.end(session);
    this.stateless.close();
    this.desk.held.close();
  }

  private request(incoming: Incoming<Session>): void {
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
        callTask(incoming, this.desk);
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
    const meant = this.meantCall(word);
    if (meant !== undefined) {
      if (!isLog || meant.caller.wantsLog(message)) meant.outlet.event([message.bytes]);
      return;
    }
    const addressee = this.addressee(server, word);
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

  /** The call that a server's word is meant for, where only one can be. */
  private meantCall({ upstream, call: tied }: Word): ClientCall | undefined {
    const found = clientCallOf(tied);
    if (found !== undefined) return found;
    const audience = upstream.audience();
    return audience.kind === 'call' ? clientCallOf(audience.call) : undefined;
  }

  /** The client of the legacy era that a server's word is meant for, where only one can be. */
  private addressee(server: Server, word: Word): Addressee | undefined {
    const meant = this.meantCall(word);
    if (meant !== undefined) {
      return meant.caller instanceof Session ? { session: meant.caller, outlet: meant.outlet } : undefined;
    }
    const { connection, upstream } = word;
    const audience = upstream.audience();
    if (connection.owner !== undefined) return this.standing(connection.owner);
    if (audience.kind === 'client') return this.standing(audience.client);
    if (audience.kind !== 'everybody') return undefined;
    const [only, another] = this.viewers(server);
    return another === undefined ? this.standing(only) : undefined;
  }

  /** A server takes a question back that a client of the modern era was asked. */
  private withdrawn({ upstream, message }: Word): void {
    if (message.requestId === undefined) return;
    this.desk.held.withdraw(upstream, bytesAt(message.bytes, message.requestId));
  }

  /** Everybody who is told of changes. */
  private *followers(): Generator<Follower> {
    yield* this.sessions.values();
    yield* this.stateless.listeners;
  }

  private release(client: Client): void {
    for (const server of this.scopes.all.servers()) server.release(client);
  }

  /** The clients that may know of a server. */
  private viewers(server: Server): Session[] {
    return [...this.sessions.values()].filter(({ scope }) => scope.shows(server.project));
  }

  private groupOf(server: Server): Group | undefined {
    return this.scopes.of(server.project.id)?.project?.servers.group(server.group);
  }

  private logLevelFor(server: Server): string | undefined {
    const wanted = this.viewers(server).map(({ logLevel }) => logLevel);
    return mostTalkative([this.loudest.get(server), ...wanted]);
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

  /** Servers of the legacy era are told once, and not for each request. */
  private louder(scope: Scope, level: string): Promise<void> | undefined {
    const told: Promise<void>[] = [];
    for (const server of scope.servers()) {
      const loudest = mostTalkative([this.loudest.get(server), level])!;
      if (this.loudest.get(server) === loudest) continue;
      this.loudest.set(server, loudest);
      for (const replica of server.replicas) {
        for (const connection of replica.connections()) {
          if (connection.owner === undefined) told.push(connection.setLogLevel(this.logLevelFor(server)));
        }
      }
    }
    return told.length === 0 ? undefined : Promise.all(told).then(() => {});
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
    this.stateless.sweep(now);
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
