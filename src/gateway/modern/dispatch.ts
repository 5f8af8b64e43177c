import { SwitchboardError, stopping } from '../../errors.ts';
import type { Message } from '../../protocol/envelope.ts';
import type { Identity } from '../../upstreams/handshake.ts';
import type { Client } from '../../upstreams/request.ts';
import { call, callModernTask } from '../call.ts';
import type { CallDesk } from '../call-context.ts';
import type { Incoming, InFlight, Responder } from '../caller.ts';
import { chooseScope } from '../choose-scope.ts';
import { hold } from '../hold.ts';
import { list } from '../lists.ts';
import type { Scope, Scopes } from '../scope.ts';
import { ModernCaller } from './caller.ts';
import { ClientNames } from './client-names.ts';
import { discover } from './greeting.ts';
import { type KnownClient, KnownClients } from './known-clients.ts';
import { Listener } from './subscriptions.ts';
import { requireTasks } from './tasks.ts';

export interface ModernSettings {
  identity: Identity;
  instance: string;
  maxSessions: number;
  sessionIdleMs: number;
}

interface ModernEvents {
  /** A client wants servers to be as loud as this. Settles when they know. */
  louder(scope: Scope, level: string): Promise<void> | undefined;
  /** What a client, or a subscription of it, has at servers ends. `as`: whom they took it for. */
  release(client: Client, as?: Client): void;
}

/** How a request came. */
export interface Circumstances extends Pick<Incoming, 'prefer' | 'projects' | 'headers'> {
  /** As whom its client says that it comes again. */
  session: string | undefined;
}

/** Requests of the modern era: each stands for itself. What lasts is only what they subscribe to. */
export class ModernGateway {
  private readonly scopes: Scopes;
  private readonly desk: CallDesk;
  private readonly settings: ModernSettings;
  private readonly events: ModernEvents;
  private readonly names = new ClientNames();
  private readonly known: KnownClients;
  private readonly callers = new Set<ModernCaller>();
  readonly listeners = new Set<Listener>();
  private whenIdle = () => {};
  private readonly becameIdle = () => this.whenIdle();
  private isStopping = false;

  constructor(scopes: Scopes, desk: CallDesk, settings: ModernSettings, events: ModernEvents) {
    this.scopes = scopes;
    this.desk = desk;
    this.settings = settings;
    this.events = events;
    const { maxSessions, sessionIdleMs } = settings;
    this.known = new KnownClients(maxSessions, sessionIdleMs, (client) => events.release(client));
  }

  /** How many clients are there, as far as one can know. */
  get clientCount(): number {
    return this.callers.size + this.known.size;
  }

  /** A request of a client, of which nothing is known but what it says. Fails where it cannot be understood. */
  receive(message: Message, responder: Responder, { session, ...how }: Circumstances): ModernCaller {
    if (this.isStopping) throw stopping();
    const known: KnownClient | undefined =
      session === undefined ? undefined : this.known.get(clientKey(session, how.projects));
    const caller = new ModernCaller(message, this.names.of(message), known, this.callers, this.becameIdle);
    this.dispatch({ caller, message, responder, ...how });
    return caller;
  }

  /** A client that named itself has gone for good. Fails where there is none of that name in these projects. */
  forget(session: string, projects: Incoming['projects']): void {
    if (this.known.forgetNamed(clientKey(session, projects))) return;
    throw new SwitchboardError(
      'unknown_session',
      'No client of that name is known here: it never came, or stayed away for too long.',
    );
  }

  sweep(now: number): void {
    this.known.sweep(now);
    for (const caller of this.callers) caller.keepAlive();
  }

  /** A project is gone, and with it everything that could be told of. */
  endScope(scope: Scope): void {
    for (const listener of [...this.listeners]) if (listener.scope === scope) listener.end();
  }

  /** Takes no more requests, and ends what would go on for ever. Calls `whenIdle` when nothing may be under way any more. */
  drain(whenIdle: () => void): void {
    this.isStopping = true;
    for (const listener of [...this.listeners]) listener.end();
    this.whenIdle = () => setImmediate(whenIdle);
  }

  /** Everything under way. */
  *requests(): Generator<InFlight> {
    for (const { current } of this.callers) if (current !== undefined) yield current;
  }

  close(): void {
    for (const listener of [...this.listeners]) listener.end();
    for (const caller of [...this.callers]) caller.leave();
    this.known.close();
  }

  private dispatch(incoming: Incoming<ModernCaller>): void {
    const { caller, message, projects } = incoming;
    const scope = chooseScope(this.scopes, this.scopes.all, projects, message);
    switch (message.method) {
      case 'tools/call':
      case 'prompts/get':
      case 'resources/read':
      case 'completion/complete':
        this.whenLoud(scope, incoming, () => call(scope, incoming, this.desk));
        return;
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
        requireTasks(caller.facts.capabilities);
        callModernTask(scope, incoming, this.desk);
        return;
      case 'tools/list':
      case 'resources/list':
      case 'resources/templates/list':
      case 'prompts/list':
        list(scope, incoming, this.settings.instance);
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

  private whenLoud(scope: Scope, incoming: Incoming<ModernCaller>, goOn: () => void): void {
    const level = incoming.caller.wantedLogLevel;
    const told = level === undefined ? undefined : this.events.louder(scope, level);
    if (told === undefined) goOn();
    else hold(incoming, () => told, goOn);
  }

  private listen(scope: Scope, incoming: Incoming<ModernCaller>): void {
    if (!incoming.responder.takesEvents)
      throw new SwitchboardError('not_acceptable', 'A subscription is a stream: accept text/event-stream.');
    this.checkRoom();
    const listener = new Listener(scope, incoming, this.settings.identity, (ended) => {
      this.listeners.delete(ended);
      this.events.release(ended, ended.identity);
    });
    const discovered = scope.listable();
    const begin = () => {
      if (this.isStopping) throw stopping();
      // Others may have come while this one was held.
      this.checkRoom();
      if (!incoming.caller.begin(listener)) return;
      this.listeners.add(listener);
      listener.begin().catch(() => listener.end());
    };
    if (discovered === undefined) begin();
    else hold(incoming, () => discovered, begin);
  }

  private checkRoom(): void {
    const { maxSessions } = this.settings;
    if (this.listeners.size < maxSessions) return;
    const why = `All ${maxSessions} subscriptions are in use (setting maxSessions).`;
    throw new SwitchboardError('too_many_sessions', why);
  }
}

/** A name holds where it was given: who comes by the address of one project is nobody in another. */
function clientKey(session: string, projects: Incoming['projects']): string {
  // A header has no line break in it.
  return projects === undefined ? session : `${projects.join('\n')}\n${session}`;
}
