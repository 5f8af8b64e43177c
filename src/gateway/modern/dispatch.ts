import { SwitchboardError, stopping } from '../../errors.ts';
import type { Principal, Sender } from '../../identity/principal.ts';
import type { Message } from '../../protocol/message.ts';
import type { Client } from '../../upstreams/request.ts';
import { failForbidden } from '../authorize.ts';
import { call } from '../call.ts';
import type { ClientSettings, Incoming } from '../caller.ts';
import type { CallServices } from '../client-call.ts';
import { enter } from '../enter.ts';
import { isList, list } from '../lists.ts';
import { isCall } from '../resolve.ts';
import { after } from '../respond.ts';
import type { InFlight, Responder } from '../responder.ts';
import type { AllScopes, Scope } from '../scope.ts';
import { callModernTask } from '../task-calls.ts';
import { ModernCaller } from './caller.ts';
import { discover } from './greeting.ts';
import { ClientNames, type KnownClient, KnownClients, ownedName } from './known-clients.ts';
import { Listener } from './subscriptions.ts';
import { requireTasks } from './tasks.ts';

interface ModernEvents {
  /** Resolves when the servers have applied at least this log level. */
  raiseLogLevel(scope: Scope, level: string): Promise<void> | undefined;
  /** Frees the resources of a client, or its listener, at servers. `as`: its identity there. */
  release(client: Client, as?: Client): void;
}

export interface Circumstances extends Pick<Incoming, 'prefer' | 'projects' | 'headers'> {
  /** The name that its client returns under. */
  session: string | undefined;
  sender: Sender;
}

/** Handles modern requests, which are independent of each other. Only listeners last. */
export class ModernGateway {
  private readonly scopes: AllScopes;
  private readonly services: CallServices;
  private readonly settings: ClientSettings;
  private readonly events: ModernEvents;
  private readonly names = new ClientNames();
  private readonly known: KnownClients;
  private readonly callers = new Set<ModernCaller>();
  readonly listeners = new Set<Listener>();
  private whenIdle = () => {};
  private readonly becameIdle = () => this.whenIdle();
  private isStopping = false;

  constructor(scopes: AllScopes, services: CallServices, settings: ClientSettings, events: ModernEvents) {
    this.scopes = scopes;
    this.services = services;
    this.settings = settings;
    this.events = events;
    this.known = new KnownClients(settings, (client) => events.release(client));
  }

  get clientCount(): number {
    return this.callers.size + this.known.size;
  }

  /** Throws if the request is malformed. */
  receive(message: Message, responder: Responder, { session, sender, ...how }: Circumstances): ModernCaller {
    if (this.isStopping) throw stopping();
    const { principal, address } = sender;
    // First, so that nothing is kept for requests that fail.
    const scope = enter(this.scopes, this.services, sender, undefined, { message, projects: how.projects });
    const known: KnownClient | undefined =
      session === undefined
        ? undefined
        : this.known.get(clientKey(principal, session, how.projects), principal);
    const name = this.names.of(message);
    const caller = new ModernCaller(message, principal, name, known, this.callers, this.becameIdle);
    this.dispatch(scope, { caller, message, responder, address, ...how });
    return caller;
  }

  /** Throws if these projects have no client of that name. */
  forget(session: string, principal: Principal, projects: Incoming['projects']): void {
    if (this.known.forgetNamed(clientKey(principal, session, projects))) return;
    throw new SwitchboardError(
      'unknown_session',
      'There is no client with this X-Switchboard-Session: it never connected, or has expired.',
    );
  }

  sweep(now: number): void {
    this.known.sweep(now);
    for (const caller of this.callers) caller.keepAlive();
  }

  endScope(scope: Scope): void {
    for (const listener of [...this.listeners]) if (listener.scope === scope) listener.end();
  }

  /** Fails the requests of a principal that has ended, and forgets its clients. */
  endPrincipal(principal: Principal, error: SwitchboardError): void {
    for (const caller of [...this.callers]) if (caller.principal === principal) caller.current?.fail(error);
    this.known.endOf(principal);
  }

  permissionsChanged(principals: ReadonlySet<Principal>): void {
    for (const { principal, current } of [...this.callers])
      if (principals.has(principal) && current !== undefined) failForbidden([current], principal.permissions);
    this.endListeners(principals);
  }

  /** Clients subscribe again to what they may still have. */
  endListeners(principals: ReadonlySet<Principal>): void {
    for (const listener of [...this.listeners]) if (principals.has(listener.principal)) listener.end();
  }

  /** Rejects new requests, and ends listeners. Calls `whenIdle` when nothing is in flight any more. */
  drain(whenIdle: () => void): void {
    this.isStopping = true;
    for (const listener of [...this.listeners]) listener.end();
    this.whenIdle = () => setImmediate(whenIdle);
  }

  *requests(): Generator<InFlight> {
    for (const { current } of this.callers) if (current !== undefined) yield current;
  }

  close(): void {
    for (const listener of [...this.listeners]) listener.end();
    for (const caller of [...this.callers]) caller.leave();
    this.known.close();
  }

  private dispatch(scope: Scope, incoming: Incoming<ModernCaller>): void {
    const { caller, message } = incoming;
    if (isCall(message.method)) {
      const level = caller.wantedLogLevel;
      if (level === undefined) call(scope, incoming, this.services);
      else
        after(incoming, this.events.raiseLogLevel(scope, level), () => call(scope, incoming, this.services));
      return;
    }
    if (isList(message.method)) {
      list(scope, incoming, this.settings.instance);
      return;
    }
    switch (message.method) {
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
        requireTasks(caller.facts.capabilities);
        callModernTask(scope, incoming, this.services);
        return;
      case 'server/discover':
        discover(scope, incoming, this.settings);
        return;
      case 'subscriptions/listen':
        this.listen(scope, incoming);
        return;
      default:
        throw new SwitchboardError('method_not_found', `Unknown method: ${message.method}`);
    }
  }

  private listen(scope: Scope, incoming: Incoming<ModernCaller>): void {
    if (!incoming.responder.takesEvents)
      throw new SwitchboardError('not_acceptable', 'A subscription is a stream: accept text/event-stream.');
    const { principal } = incoming.caller;
    this.checkRoom(principal);
    const listener = new Listener(scope, incoming, this.services, this.settings.identity, (ended) => {
      this.listeners.delete(ended);
      this.events.release(ended, ended.identity);
    });
    after(incoming, scope.listable(), () => {
      if (this.isStopping) throw stopping();
      // Other requests may have begun meanwhile.
      this.checkRoom(principal);
      if (!incoming.caller.begin(listener)) return;
      this.listeners.add(listener);
      listener.begin().catch(() => listener.end());
    });
  }

  private checkRoom(principal: Principal): void {
    const { maxSessions, maxSessionsPerPrincipal } = this.settings;
    if (this.listeners.size >= maxSessions)
      throw new SwitchboardError(
        'too_many_sessions',
        `All ${maxSessions} subscriptions are in use (setting maxSessions).`,
      );
    if (principal.kind === 'local') return;
    let own = 0;
    for (const listener of this.listeners) if (listener.principal === principal) own++;
    if (own < maxSessionsPerPrincipal) return;
    const why = `You have ${own} subscriptions open, the most for one sender (setting maxSessionsPerPrincipal).`;
    throw new SwitchboardError('too_many_sessions', why);
  }
}

/** A client's name is valid for its principal, in the projects where it was given. */
function clientKey(principal: Principal, session: string, projects: Incoming['projects']): string {
  // A header cannot contain a line break.
  return ownedName(principal, projects === undefined ? session : `${projects.join('\n')}\n${session}`);
}
