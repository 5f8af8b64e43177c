import type { ListName } from '../catalog/contribution.ts';
import { stopping } from '../errors.ts';
import { notificationMessage } from '../protocol/jsonrpc.ts';
import type { Group } from '../upstreams/group.ts';
import type { Client } from '../upstreams/request.ts';
import type { Origin, Server, ServerMessage } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import type { CallDesk } from './call-context.ts';
import type { InFlight } from './caller.ts';
import { HeldCalls } from './crossing/held-calls.ts';
import type { Follower } from './follower.ts';
import { LegacyGateway, type LegacySettings } from './legacy/dispatch.ts';
import { LogLevels } from './legacy/log-levels.ts';
import { withdrawAsks } from './legacy/server-requests.ts';
import type { SessionKeeper } from './legacy/session-keeper.ts';
import { followAgain, followElsewhere, followRegrouped } from './legacy/subscriptions.ts';
import { changedNotifications } from './list-changes.ts';
import { ModernGateway, type ModernSettings } from './modern/dispatch.ts';
import { RequestStates } from './modern/request-state.ts';
import type { CallRecorder } from './records.ts';
import type { Scope, Scopes } from './scope.ts';
import { ServerWords } from './server-messages.ts';

export interface GatewaySettings extends LegacySettings, ModernSettings {
  keepAliveMs: number;
  /** How many calls may wait for clients that were asked for something, and for how long. */
  maxHeldCalls: number;
  inputWaitMs: number;
}

/** Everything between clients and servers: clients of both eras on one side, scopes with their servers on the other. */
export class Gateway {
  readonly legacy: LegacyGateway;
  readonly modern: ModernGateway;
  private readonly scopes: Scopes;
  private readonly held: HeldCalls;
  private readonly words: ServerWords;
  private readonly logLevels: LogLevels;
  private readonly sweeper: NodeJS.Timeout;

  constructor(scopes: Scopes, recorder: CallRecorder, keeper: SessionKeeper, settings: GatewaySettings) {
    this.scopes = scopes;
    const { maxHeldCalls, inputWaitMs } = settings;
    this.held = new HeldCalls(maxHeldCalls, inputWaitMs);
    const desk: CallDesk = { recorder, held: this.held, states: new RequestStates(inputWaitMs), inputWaitMs };
    this.legacy = new LegacyGateway(scopes, desk, keeper, settings, {
      release: (client) => this.release(client),
      levelChanged: (session) => this.logLevels.changed(session),
      viewers: (server) => this.words.viewers(server),
    });
    this.words = new ServerWords(this.legacy.sessions, this.held);
    this.logLevels = new LogLevels((server) => this.words.viewers(server));
    this.modern = new ModernGateway(scopes, desk, settings, {
      louder: (scope, level) => this.logLevels.louder(scope, level),
      release: (client, as) => this.release(client, as),
    });
    this.sweeper = setInterval(() => this.sweep(Date.now()), settings.keepAliveMs);
    this.sweeper.unref();
  }

  /** How many clients are there, as far as one can know. */
  get clientCount(): number {
    return this.legacy.clientCount + this.modern.clientCount;
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
    this.legacy.endScope(scope);
    this.modern.endScope(scope);
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
    withdrawAsks(upstream, this.legacy.sessions.values());
    const group = this.groupOf(server);
    const isGone = !replica.isLive || replica.condition.state === 'stopped';
    if (group !== undefined && isGone) followElsewhere(group, replica, this.followers());
  }

  /** Servers of a project have come, gone, or changed groups. */
  regrouped(servers: Servers): void {
    followRegrouped(servers, this.followers());
  }

  /** A server says something by itself. */
  notified(word: ServerMessage): void {
    this.words.notified(word);
  }

  /** A server asks something. */
  asked(word: ServerMessage): void {
    this.words.asked(word);
  }

  /**
   * Takes no more requests. What waits for a client fails at once, and streams are closed that nothing is under way for.
   * Settles when nothing is under way any more.
   */
  drain(): Promise<void> {
    this.held.close();
    return new Promise((resolve) => {
      const check = () => {
        if (this.requests().length === 0) resolve();
      };
      this.modern.drain(check);
      for (const request of this.requests()) if (request.awaitsClient) request.fail(stopping());
      this.legacy.drain(check);
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
    this.legacy.close();
    this.modern.close();
    this.held.close();
  }

  private requests(): InFlight[] {
    return [...this.legacy.requests(), ...this.modern.requests()];
  }

  /** Everybody who is told of changes. */
  private *followers(): Generator<Follower> {
    yield* this.legacy.sessions.values();
    yield* this.modern.listeners;
  }

  private release(client: Client, as?: Client): void {
    for (const server of this.scopes.all.servers()) server.release(client, as);
  }

  private groupOf(server: Server): Group | undefined {
    return this.scopes.of(server.project.id)?.project?.servers.group(server.group);
  }

  private sweep(now: number): void {
    this.legacy.sweep(now);
    this.modern.sweep(now);
  }
}
