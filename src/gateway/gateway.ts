import type { ListName } from '../catalog/contribution.ts';
import { stopping } from '../errors.ts';
import { credentialEnded, type Principal } from '../identity/principal.ts';
import { notificationMessage } from '../protocol/jsonrpc.ts';
import type { Group } from '../upstreams/group.ts';
import type { Client } from '../upstreams/request.ts';
import type { Origin, Server, ServerMessage } from '../upstreams/server.ts';
import type { Servers } from '../upstreams/servers.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import type { ClientSettings } from './caller.ts';
import type { CallServices } from './client-call.ts';
import { HeldCalls } from './crossing/held-calls.ts';
import { LegacyGateway } from './legacy/dispatch.ts';
import type { SessionPersistence } from './legacy/persistence.ts';
import { changedNotifications } from './lists.ts';
import { LogLevels } from './logging.ts';
import { ModernGateway } from './modern/dispatch.ts';
import { RequestStates } from './modern/request-state.ts';
import type { InFlight } from './responder.ts';
import type { AllScopes, Scope } from './scope.ts';
import { ServerMessages } from './server-messages.ts';
import {
  moveSubscriptions,
  regroupSubscriptions,
  restoreSubscriptions,
  type Subscriber,
} from './subscriptions.ts';

export interface GatewaySettings extends ClientSettings {
  keepAliveMs: number;
  maxHeldCalls: number;
  inputWaitMs: number;
}

export class Gateway {
  readonly legacy: LegacyGateway;
  readonly modern: ModernGateway;
  private readonly scopes: AllScopes;
  private readonly held: HeldCalls;
  private readonly serverMessages: ServerMessages;
  private readonly logLevels: LogLevels;
  private readonly sweeper: NodeJS.Timeout;

  constructor(
    scopes: AllScopes,
    { recorder, ...guards }: Pick<CallServices, 'recorder' | 'access' | 'limiter' | 'taskIds'>,
    persistence: SessionPersistence,
    settings: GatewaySettings,
  ) {
    this.scopes = scopes;
    const { maxHeldCalls, inputWaitMs } = settings;
    this.held = new HeldCalls(maxHeldCalls, inputWaitMs);
    const services: CallServices = {
      ...guards,
      recorder,
      held: this.held,
      states: new RequestStates(inputWaitMs),
      inputWaitMs,
    };
    this.legacy = new LegacyGateway(scopes, services, persistence, settings, {
      release: (client) => this.release(client),
      levelChanged: (session) => this.logLevels.changed(session),
      viewers: (server) => this.serverMessages.viewers(server),
    });
    this.serverMessages = new ServerMessages(this.legacy.sessions, this.held);
    this.logLevels = new LogLevels((server) => this.serverMessages.viewers(server));
    this.modern = new ModernGateway(scopes, services, settings, {
      raiseLogLevel: (scope, level) => this.logLevels.raise(scope, level),
      release: (client, as) => this.release(client, as),
    });
    this.sweeper = setInterval(() => this.sweep(Date.now()), settings.keepAliveMs);
    this.sweeper.unref();
  }

  get clientCount(): number {
    return this.legacy.clientCount + this.modern.clientCount;
  }

  /** Notifies every client of this scope, once for each kind of list. */
  listsChanged(scope: Scope, lists: readonly ListName[]): void {
    for (const method of new Set(lists.map((name) => changedNotifications[name]))) {
      const notification = notificationMessage(method);
      for (const subscriber of this.subscribers()) {
        if (subscriber.scope === scope) subscriber.listChanged(method, notification);
      }
    }
  }

  /** Ends the clients of a removed project when their requests are finished. */
  endScope(scope: Scope): void {
    for (const { subscriptions } of this.subscribers()) {
      for (const [key, { project }] of subscriptions)
        if (project === scope.project?.id) subscriptions.delete(key);
    }
    this.legacy.endScope(scope);
    this.modern.endScope(scope);
  }

  /** Ends everything of a principal that was revoked, removed or has expired. */
  endPrincipal(principal: Principal): void {
    const ended = credentialEnded();
    this.legacy.endPrincipal(principal, ended);
    this.modern.endPrincipal(principal, ended);
    this.held.endPrincipal(principal);
  }

  permissionsChanged(principals: ReadonlySet<Principal>): void {
    this.legacy.permissionsChanged(principals);
    this.modern.permissionsChanged(principals);
  }

  /** Ends the streams of principals, which may have been opened with a key that has ended: clients open them again with another. */
  keyEnded(principals: ReadonlySet<Principal>): void {
    this.legacy.disconnect(principals);
    this.modern.endListeners(principals);
  }

  /** Restores the state that clients set on the lost connection. */
  connected({ server, replica, connection }: Origin): void {
    const { owner } = connection;
    void this.logLevels.apply(server, connection);
    // The shared connection of a server with isolated clients has no subscriptions.
    if (owner === undefined && replica.isolates) return;
    const subscribers = [...this.subscribers()].filter(
      ({ identity }) => owner === undefined || identity === owner,
    );
    restoreSubscriptions(server, this.groupOf(server), replica, connection, subscribers);
  }

  /** Withdraws the server's requests, and moves its subscriptions. */
  disconnected({ server, replica }: Origin, upstream: Upstream): void {
    for (const { serverRequests } of this.legacy.sessions.values()) serverRequests.withdrawAll(upstream);
    const group = this.groupOf(server);
    const isGone = !replica.isLive || replica.condition.state === 'stopped';
    if (group !== undefined && isGone) moveSubscriptions(group, replica, this.subscribers());
  }

  regrouped(servers: Servers): void {
    regroupSubscriptions(servers, this.subscribers());
  }

  onNotification(received: ServerMessage): void {
    this.serverMessages.onNotification(received);
  }

  onServerRequest(received: ServerMessage): void {
    this.serverMessages.onRequest(received);
  }

  /**
   * Rejects new requests, fails those that wait for a client, and closes idle streams. Resolves when nothing is in flight.
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

  /** The group of each call in flight; undefined if the response is ours. */
  underWay(): (string | undefined)[] {
    return this.requests().map(({ group }) => group?.name);
  }

  close(): void {
    clearInterval(this.sweeper);
    // Newest first: a slot that becomes free must not go to a request that is about to fail.
    for (const request of this.requests().toReversed()) request.fail(stopping());
    this.legacy.close();
    this.modern.close();
    this.held.close();
  }

  private requests(): InFlight[] {
    return [...this.legacy.requests(), ...this.modern.requests()];
  }

  private *subscribers(): Generator<Subscriber> {
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
