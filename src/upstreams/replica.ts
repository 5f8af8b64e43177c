import type { ServerConfig } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { Era } from '../protocol/versions.ts';
import type { Condition, State } from './condition.ts';
import { Connection } from './connection.ts';
import type { ConnectionListener, ReplicaContext } from './connection-context.ts';
import { Connections } from './connections.ts';
import type { LiveUpstream } from './connector.ts';
import { Discovery } from './discovery.ts';
import { type KnownEra, rediscover } from './handshake.ts';
import { Health } from './health.ts';
import { IdleStop } from './idle-stop.ts';
import type { Offer, OfferKind } from './lists.ts';
import type { Client } from './request.ts';
import type { ServerFacts } from './server-facts.ts';
import type { ReplicaSettings } from './settings.ts';

export interface ReplicaEvents extends ConnectionListener<Connection> {
  /** The state, its reason or the next try changed. */
  stateChanged(from: State): void;
  /** A list was fetched. `announced`: the server announced a change, or is back. */
  offerChanged(kind: OfferKind, announced: boolean): void;
}

/** Distinguishes replicas: `--port 900${SWITCHBOARD_REPLICA}`. */
const REPLICA_VARIABLE = 'SWITCHBOARD_REPLICA';

/** One running instance of a server: its connections, what it offers, and the health of its calls. */
export class Replica {
  /** Counts from 1. */
  readonly number: number;
  readonly server: string;
  config: ServerConfig;
  private readonly settings: ReplicaSettings;
  private readonly context: ReplicaContext<Connection>;
  private readonly events: ReplicaEvents;
  readonly connections: Connections;
  readonly discovery: Discovery;
  readonly health: Health;
  private readonly idleStop: IdleStop;
  private reported: Condition | undefined;
  private readonly known: KnownEra;
  facts: ServerFacts | undefined;

  constructor(
    number: number,
    config: ServerConfig,
    settings: ReplicaSettings,
    inherited: Offer | undefined,
    events: ReplicaEvents,
  ) {
    this.number = number;
    this.server = config.name;
    this.config = config;
    this.settings = {
      ...settings,
      variable: (name, config) =>
        name === REPLICA_VARIABLE ? String(number) : settings.variable(name, config),
    };
    this.events = events;
    this.context = {
      listener: events,
      stateChanged: () => this.stateChanged(),
      listsChanged: (kinds) => this.discovery.changed(kinds),
      connect: (...made) => new Connection(this.config, this.settings, this.context, ...made),
    };
    const log = (line: string) => events.log(line);
    this.health = new Health(settings, log);
    const only = config.era === 'auto' ? undefined : config.era;
    this.known = { era: only, only, discovered: undefined };
    this.connections = new Connections(config, this.known, this.context, {
      opened: (live, wasBroken) => this.opened(live, wasBroken),
      joined: () => this.joined(),
      recheck: () => this.recheck(),
      missed: () => this.discovery.refresh(),
    });
    this.discovery = new Discovery(settings, () => this.connections.lives, inherited, {
      discovered: (kind, announced) => {
        if (this.condition.state !== 'stopped') events.offerChanged(kind, announced);
      },
      settled: () => this.assess(),
      loops: (error) => this.loops(error),
      log,
    });
    this.idleStop = new IdleStop(config.idleStopMs, this.connections, this.discovery);
  }

  /** Of the shared connections; `connections.condition` includes those of single clients. */
  get condition(): Condition {
    return this.connections.sharedCondition;
  }

  get isolates(): boolean {
    return this.connections.isolates;
  }

  /** What is missing or cut of what the server sent about itself. */
  get problems(): string[] {
    return [...(this.facts?.problems ?? []), ...this.discovery.problems];
  }

  get isLive(): boolean {
    return this.isolates || this.connections.isLive;
  }

  /** Settles when the shared connection is open or has failed; undefined if it is not being opened. */
  get opening(): Promise<unknown> | undefined {
    return this.isolates ? undefined : this.connections.first.opening;
  }

  get isEjected(): boolean {
    return this.health.isEjected;
  }

  get hasRoom(): boolean {
    return this.isolates || this.connections.first.slots.hasRoom;
  }

  /** Calls in flight and queued. */
  get load(): number {
    const { used, queued } = this.connections.first.slots;
    return used + queued;
  }

  /** What the server sends about itself to clients of this era. */
  factsFor(era: Era): ServerFacts | undefined {
    return this.connections.forEra(era).current?.facts ?? this.facts;
  }

  /** A client is gone. `as`: the client that it was taken for. */
  release(client: Client, as: Client = client): void {
    if (this.connections.release(client)) this.stateChanged();
    for (const connection of this.connections.of(as)) connection.release(client);
  }

  /** Fetches again what has expired, because a client lists it. */
  freshen(): void {
    this.discovery.freshen();
    const { first } = this.connections;
    const { current } = first;
    if (current?.facts.era !== 'modern') return;
    const { instance, connectTimeoutMs } = this.settings;
    rediscover(current.upstream, instance, this.known, connectTimeoutMs).then(
      (facts) => {
        if (facts !== undefined && first.current === current) Object.assign(current.facts, facts);
      },
      (error: Error) => {
        if (first.current !== current) return;
        if (error instanceof SwitchboardError && error.code === 'server_loop') this.loops(error);
        else this.events.log(error.message);
      },
    );
  }

  /** Starts it if necessary and fetches its lists. Never rejects: the condition has the reason. */
  async discover(): Promise<void> {
    try {
      await this.connections.first.open();
      await this.discovery.done;
    } catch {
      // The condition has the reason.
    }
  }

  wake(): void {
    if (this.condition.state === 'idle') void this.discover();
  }

  /** Applies what can change while it runs. */
  reconfigure(config: ServerConfig): void {
    this.config = config;
    for (const slots of this.connections.slots()) slots.resize(config.concurrency);
    this.idleStop.resize(config.idleStopMs);
  }

  /** A call was sent or is over. */
  used(): void {
    if (this.config.idleStopMs > 0) this.idleStop.lastUsed = Date.now();
  }

  callSucceeded(): void {
    if (this.health.hasFailed && this.health.succeeded()) this.assess();
  }

  /** A call was sent and failed. `isServerFault`: it counts for ejection. */
  callFailed(error: SwitchboardError, isServerFault: boolean): void {
    const ejection = isServerFault ? this.health.failed(error) : this.health.note(error);
    if (ejection !== undefined) this.connections.first.lifecycle.apply({ kind: 'impaired', ...ejection });
  }

  async stop(): Promise<void> {
    this.discovery.stop();
    this.idleStop.stop();
    await this.connections.close();
  }

  private stateChanged(): void {
    const before = this.reported;
    const now = this.connections.condition;
    const isSame =
      now.state === before?.state && now.reason === before.reason && now.nextTry === before.nextTry;
    if (isSame) return;
    this.reported = now;
    const from = before?.state ?? 'idle';
    if (now.state !== from) this.health.logCounts();
    this.events.stateChanged(from);
  }

  private opened(live: LiveUpstream, wasBroken: boolean): void {
    this.facts = live.facts;
    this.health.reset();
    this.idleStop.begin();
    this.discovery.begin(wasBroken);
  }

  /** It is connected in its second era too, in which it may offer other things. */
  private joined(): void {
    this.idleStop.begin();
    void this.discovery.refresh();
  }

  /** It leads back to us. */
  private loops(error: SwitchboardError): void {
    this.facts = undefined;
    this.connections.refuse(error);
    this.discovery.forget();
  }

  private assess(): void {
    if (this.isEjected) return;
    const missing = this.discovery.missing();
    this.connections.first.lifecycle.apply(
      missing === undefined ? { kind: 'ready' } : { kind: 'impaired', ...missing },
    );
  }

  private recheck(): void {
    this.health.readmit();
    if (this.discovery.missing() === undefined) this.assess();
    else this.discovery.again();
  }
}
