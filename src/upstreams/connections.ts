import type { ServerConfig } from '../config.ts';
import type { SwitchboardError } from '../errors.ts';
import { type Era, otherEra } from '../protocol/versions.ts';
import { type Condition, overall } from './condition.ts';
import type { Connection } from './connection.ts';
import type { ReplicaContext } from './connection-context.ts';
import type { LiveUpstream } from './connector.ts';
import { isRejection, type KnownEra, relayedCapabilities } from './handshake.ts';
import type { Client, ClientDescription } from './request.ts';
import { RpcResponseError } from './server-errors.ts';
import type { Slots } from './slots.ts';

interface SharedEvents {
  /** The first connection is open. */
  opened(live: LiveUpstream, wasBroken: boolean): void;
  /** The second connection is open too. */
  joined(): void;
  recheck(): void;
  missed(): void;
}

/** How long a server may take to respond in its second era, beyond the time that it takes to start. */
const SECOND_ERA_MS = 5_000;

/**
 * All connections to one replica. Clients share one. If the server may speak both eras, the first client of the other
 * era opens a second one; if that fails, the first serves both eras. With `isolation: "session"` each client has its
 * own.
 */
export class Connections {
  private readonly config: ServerConfig;
  private readonly known: KnownEra;
  private readonly context: ReplicaContext<Connection>;
  private readonly events: SharedEvents;
  /** Whether each client has its own connection. */
  readonly isolates: boolean;
  readonly first: Connection;
  private second: Connection | undefined;
  /** The shared connection for clients of each era. */
  private readonly byEra: Record<Era, Connection>;
  private readonly byOwner = new Map<Client, Connection>();
  private readonly closing = new Set<Promise<void>>();
  /** Whether the server is known to speak only one era. */
  private isSingleEra = false;

  constructor(
    config: ServerConfig,
    known: KnownEra,
    context: ReplicaContext<Connection>,
    events: SharedEvents,
  ) {
    this.config = config;
    this.known = known;
    this.context = context;
    this.events = events;
    this.isolates = config.isolation === 'session';
    this.first = context.connect(
      { owner: undefined, capabilities: relayedCapabilities, known },
      {
        opened: (live, wasBroken) => {
          this.firstOpened(live);
          events.opened(live, wasBroken);
        },
        failed: ({ message }) => context.listener.log(message),
        recheck: events.recheck,
        missed: events.missed,
      },
    );
    this.byEra = { legacy: this.first, modern: this.first };
  }

  /** A second connection that was never used does not count. */
  get sharedCondition(): Condition {
    const { condition } = this.first.lifecycle;
    const second = this.second?.lifecycle.condition;
    return second === undefined || second.state === 'idle' ? condition : overall([condition, second]);
  }

  get condition(): Condition {
    const { sharedCondition: shared } = this;
    if (this.byOwner.size === 0) return shared;
    return overall([shared, ...[...this.byOwner.values()].map(({ lifecycle }) => lifecycle.condition)]);
  }

  get lives(): LiveUpstream[] {
    return this.shared.flatMap(({ current }) => current ?? []);
  }

  get isLive(): boolean {
    return this.first.current !== undefined || this.second?.current !== undefined;
  }

  get isBusy(): boolean {
    return this.shared.some(({ isBusy }) => isBusy);
  }

  get restarts(): number {
    return this.shared.reduce((sum, { opens }) => sum + Math.max(0, opens - 1), 0);
  }

  all(): Connection[] {
    return [...this.shared, ...this.byOwner.values()];
  }

  of(client: Client): Connection[] {
    const own = this.byOwner.get(client);
    return own === undefined ? this.shared : [...this.shared, own];
  }

  /** Connections may share their slots. */
  slots(): Set<Slots> {
    return new Set(this.all().map(({ slots }) => slots));
  }

  /** Why no call of this client can be sent now; undefined if it can. */
  refusal(client: Client): SwitchboardError | undefined {
    return (this.byOwner.get(client) ?? this.byEra[client.era]).refusal;
  }

  forEra(era: Era): Connection {
    return this.byEra[era];
  }

  for(client: Client, description: ClientDescription): Connection {
    // A new connection would start a stopped server.
    if (!this.isolates || this.sharedCondition.state === 'stopped') return this.byEra[client.era];
    let own = this.byOwner.get(client);
    if (own === undefined) {
      own = this.connectFor(client, description);
      this.byOwner.set(client, own);
    }
    return own;
  }

  /** Opens the connection for this client. Connecting may show that another one is needed. */
  async opened(client: Client, description: ClientDescription): Promise<Connection> {
    for (;;) {
      const connection = this.for(client, description);
      try {
        await connection.open();
        if (!this.isOutdated(connection, client)) return connection;
      } catch (error) {
        if (!this.isOutdated(connection, client)) throw error;
      }
    }
  }

  /** Whether this client now uses another connection, because the eras of the server became known. */
  isOutdated(connection: Connection, { era }: Client): boolean {
    return connection.owner === undefined && connection !== this.byEra[era];
  }

  /** Closes the client's own connection. Returns false if it had none. */
  release(client: Client): boolean {
    const own = this.byOwner.get(client);
    this.byOwner.delete(client);
    own?.close().catch(() => {});
    return own !== undefined;
  }

  /** Closes the shared ones, because they lead back to us. */
  refuse(why: SwitchboardError): void {
    this.first.refuse(why);
    this.dropSecond();
  }

  /** Closes the shared ones until the next use. */
  rest(): void {
    for (const connection of this.shared) connection.rest();
  }

  /** Retries now, instead of at the next scheduled try. */
  retry(): void {
    this.first.retry();
    if (this.second?.lifecycle.condition.state !== 'idle') this.second?.retry();
    for (const connection of this.byOwner.values()) connection.retry();
  }

  async close(): Promise<void> {
    await Promise.all([...this.all().map((connection) => connection.close()), ...this.closing]);
    this.byOwner.clear();
  }

  private get shared(): Connection[] {
    return this.second === undefined ? [this.first] : [this.first, this.second];
  }

  private connectFor(owner: Client, { capabilities }: ClientDescription): Connection {
    const own = this.context.connect(
      { owner, capabilities, known: this.knownFor(owner.era) },
      {
        opened: ({ facts }) => {
          own.lifecycle.apply({ kind: 'ready' });
          if (facts.era !== owner.era) this.isSingleEra = true;
        },
        failed: ({ message }) => this.context.listener.log(message),
      },
    );
    return own;
  }

  /** A client's own connection uses the client's era if the server may speak both. */
  private knownFor(era: Era): KnownEra {
    const { era: usual } = this.known;
    if (usual === undefined || usual === era || !this.maySpeak(era)) return this.known;
    if (era === 'modern') return { era: undefined, discovered: undefined };
    return { era, isWished: true, discovered: undefined, timeoutMs: this.secondEraTimeoutMs };
  }

  private firstOpened({ facts: { era } }: LiveUpstream): void {
    const other = otherEra[era];
    // A restarted server may speak both.
    if (this.first.lifecycle.condition.losses > 0) this.isSingleEra = false;
    const hasSecond = this.second !== undefined && this.byEra[other] === this.second;
    this.byEra[era] = this.first;
    if (hasSecond) return;
    this.dropSecond();
    if (this.maySpeak(other)) this.prepareSecond(other);
  }

  /** Whether a server that was connected in the other era may speak this one too. */
  private maySpeak(era: Era): boolean {
    const { era: setting, transport } = this.config;
    // A hosted server has one process with one pipe.
    if (this.isSingleEra || setting !== 'auto' || transport.type === 'hosted') return false;
    // Servers are asked for the modern era first.
    return era === 'legacy' || this.known.discovered !== undefined;
  }

  private get secondEraTimeoutMs(): number {
    return SECOND_ERA_MS + 2 * this.first.openedInMs;
  }

  /** Creates the second connection; the first client of that era opens it. */
  private prepareSecond(era: Era): void {
    const second: Connection = this.context.connect(
      {
        owner: undefined,
        capabilities: relayedCapabilities,
        known: { era, discovered: undefined, only: era, timeoutMs: this.secondEraTimeoutMs },
        slots: this.first.slots,
      },
      {
        opened: ({ upstream }) => {
          // Without a session the server could send no requests in the legacy era, but can in the modern one.
          if (era === 'legacy' && !upstream.canSendRequests)
            this.giveUpSecond(second, era, 'the server keeps no sessions in that era');
          else {
            second.lifecycle.apply({ kind: 'ready' });
            this.events.joined();
          }
        },
        failed: ({ message }, cause) => {
          const isFinal = cause instanceof RpcResponseError || isRejection(cause);
          if (second.opens === 0 || isFinal) this.giveUpSecond(second, era, message);
          else this.context.listener.log(message);
        },
        missed: this.events.missed,
      },
    );
    this.second = second;
    this.byEra[era] = second;
  }

  private giveUpSecond(second: Connection, era: Era, why: string): void {
    if (this.second !== second || this.first.lifecycle.condition.state === 'stopped') return;
    this.dropSecond();
    this.context.listener.log(`${era} clients use the ${otherEra[era]} connection, with translation: ${why}`);
    // A server that is down has not shown which eras it speaks.
    if (this.first.current === undefined) return;
    this.isSingleEra = true;
    // Clients of that era use the first one from now on.
    this.context.listener.connected(this.first);
  }

  private dropSecond(): void {
    const { second } = this;
    this.second = undefined;
    this.byEra.legacy = this.first;
    this.byEra.modern = this.first;
    if (second === undefined) return;
    const closed = second.close().finally(() => this.closing.delete(closed));
    this.closing.add(closed);
  }
}
