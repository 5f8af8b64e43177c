import type { ServerConfig } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { Era } from '../protocol/versions.ts';
import type { Candidate } from './balance.ts';
import type { Condition, State } from './condition.ts';
import { Connection } from './connection.ts';
import type { ConnectionListener, ReplicaContext } from './connection-context.ts';
import { Connections } from './connections.ts';
import { Discovery } from './discovery.ts';
import { type KnownEra, rediscover } from './handshake.ts';
import { Health } from './health.ts';
import type { Freshness, Offer, OfferKind } from './lists.ts';
import type { LiveUpstream } from './live-upstream.ts';
import type { KnownOffer } from './offers.ts';
import type { Client } from './request.ts';
import { Resting } from './resting.ts';
import type { ServerFacts } from './server-facts.ts';
import type { ReplicaSettings } from './settings.ts';
import { SharedConnections } from './shared-connections.ts';

export interface ReplicaEvents extends ConnectionListener<Connection> {
  /** Its state is another one, or the reason for it is. */
  stateChanged(from: State): void;
  /** What it offers of this kind is known anew. `announced`: the server said so, or is back. */
  offerChanged(kind: OfferKind, announced: boolean): void;
}

/** With it replicas can be told apart: `--port 900${SWITCHBOARD_REPLICA}`. */
const REPLICA_VARIABLE = 'SWITCHBOARD_REPLICA';

/** One running instance of a server: its connections, what it offers, and how it fares. */
export class Replica implements Candidate {
  /** Counted from 1. */
  readonly number: number;
  readonly server: string;
  /** Whether each client has an instance of its own. */
  readonly isolates: boolean;
  private config: ServerConfig;
  private readonly settings: ReplicaSettings;
  private readonly context: ReplicaContext<Connection>;
  private readonly events: ReplicaEvents;
  private readonly shared: SharedConnections;
  readonly connections: Connections;
  private readonly discovery: Discovery;
  private readonly health: Health;
  private readonly resting: Resting;
  /** What was told last. */
  private told: Condition | undefined;
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
    this.isolates = config.isolation === 'session';
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
    this.shared = new SharedConnections(config, this.known, this.context, {
      opened: (live, wasBroken) => this.opened(live, wasBroken),
      joined: () => this.joined(),
      recheck: () => this.recheck(),
      missed: () => this.discovery.refresh(),
    });
    this.connections = new Connections(this.isolates, this.shared, this.context);
    this.discovery = new Discovery(settings, () => this.shared.lives, inherited, {
      discovered: (kind, announced) => {
        if (this.condition.state !== 'stopped') events.offerChanged(kind, announced);
      },
      settled: () => this.assess(),
      loops: (error) => this.loops(error),
      log,
    });
    this.resting = new Resting(config.idleStopMs, this.shared, this.discovery);
  }

  get condition(): Condition {
    return this.shared.condition;
  }

  /** What others are to see: where clients have instances of their own, those count too. */
  get shown(): Condition {
    return this.connections.condition;
  }

  get offer(): KnownOffer | undefined {
    return this.discovery.known;
  }

  /** What of its own words is cut or left out, and why. */
  get problems(): string[] {
    return [...(this.facts?.problems ?? []), ...this.discovery.problems];
  }

  /** Whether all of its lists were asked for once. */
  get isSeen(): boolean {
    return this.discovery.isSeen;
  }

  /** How often it was started after the first time. */
  get restarts(): number {
    return this.shared.restarts;
  }

  /** How long calls may take. */
  get limits(): Pick<ServerConfig, 'timeoutMs' | 'maxTimeoutMs'> {
    return this.config;
  }

  /** By what name users change how long a call may take. */
  get timeoutSetting(): string {
    return this.config.transport.type === 'hosted' ? 'hosting.callTimeoutMs' : 'timeoutMs';
  }

  get isLive(): boolean {
    return this.isolates || this.shared.isLive;
  }

  /** Settles when it is there for all clients; undefined where it is not being started. */
  get opening(): Promise<unknown> | undefined {
    return this.isolates ? undefined : this.shared.first.opening;
  }

  get isEjected(): boolean {
    return this.health.isEjected;
  }

  get hasRoom(): boolean {
    return this.isolates || this.shared.first.slots.hasRoom;
  }

  get load(): number {
    const { used, queued } = this.shared.first.slots;
    return used + queued;
  }

  /** Whether all that is known of it is of the legacy era. */
  get isLegacy(): boolean {
    return this.factsFor('modern')?.era === 'legacy';
  }

  /** What it says of itself to clients of this era. */
  factsFor(era: Era): ServerFacts | undefined {
    return this.shared.for(era).current?.facts ?? this.facts;
  }

  /** A client is gone: what was its own ends with it. `as`: whom it was taken for. */
  release(client: Client, as: Client = client): void {
    if (this.connections.release(client)) this.stateChanged();
    for (const connection of this.connections.of(as)) connection.release(client);
  }

  freshness(kind: OfferKind): Freshness {
    return this.discovery.freshness(kind);
  }

  /** Why a list of it could not be had; undefined where it could. */
  unlisted(kind: OfferKind): string | undefined {
    return this.discovery.failureOf(kind);
  }

  /** Somebody asks what it offers: what its server says is out of date is asked for again. */
  freshen(): void {
    this.discovery.freshen();
    const { first } = this.shared;
    const { current } = first;
    if (current?.facts.era !== 'modern') return;
    const { instance, connectTimeoutMs } = this.settings;
    rediscover(current.upstream, instance, this.known, connectTimeoutMs).then(
      (facts) => {
        if (facts !== undefined && first.current === current) Object.assign(current.facts, facts);
      },
      (error: Error) => {
        if (first.current === current) this.discoveryFailed(error);
      },
    );
  }

  /** Starts it if need be and learns what it offers. Never throws: the condition tells how it went. */
  async discover(): Promise<void> {
    try {
      await this.shared.first.open();
      await this.discovery.done;
    } catch {
      // The condition says why.
    }
  }

  /** Starts it, if it only waits for somebody to use it. */
  wake(): void {
    if (this.condition.state === 'idle') void this.discover();
  }

  /** Takes over what can be changed while it runs. */
  reconfigure(config: ServerConfig): void {
    this.config = config;
    for (const slots of this.connections.slots()) slots.resize(config.concurrency);
    this.resting.resize(config.idleStopMs);
  }

  /** A call is on its way, or came back. */
  used(): void {
    this.resting.used();
  }

  callSucceeded(): void {
    if (this.health.succeeded()) this.assess();
  }

  /** A call went out and did not come back as it should. `isItsFault`: it had all the time that it may have. */
  callFailed(error: SwitchboardError, isItsFault: boolean): void {
    const ejection = isItsFault ? this.health.failed(error) : this.health.note(error);
    if (ejection !== undefined) this.shared.first.lifecycle.apply({ kind: 'impaired', ...ejection });
  }

  /** A call was not even sent. */
  callRefused(error: SwitchboardError): void {
    this.health.note(error);
  }

  async stop(): Promise<void> {
    this.discovery.stop();
    this.resting.stop();
    await this.connections.close();
  }

  private stateChanged(): void {
    const before = this.told;
    const now = this.shown;
    const isSame =
      now.state === before?.state && now.reason === before.reason && now.nextTry === before.nextTry;
    if (isSame) return;
    this.told = now;
    const from = before?.state ?? 'idle';
    if (now.state !== from) this.health.logCounts();
    this.events.stateChanged(from);
  }

  private opened(live: LiveUpstream, wasBroken: boolean): void {
    this.facts = live.facts;
    this.health.reset();
    this.resting.begin();
    this.discovery.begin(wasBroken);
  }

  /** It is connected in its second era too, in which it may offer something else. */
  private joined(): void {
    this.resting.begin();
    void this.discovery.refresh();
  }

  private discoveryFailed(error: Error): void {
    if (error instanceof SwitchboardError && error.code === 'server_loop') this.loops(error);
    else this.events.log(error.message);
  }

  /** What it offers is our own, or will be when it comes round. */
  private loops(error: SwitchboardError): void {
    this.facts = undefined;
    this.shared.refuse(error);
    this.discovery.forget();
  }

  /** Is it well? Where it is not, what is wrong is looked at again later. */
  private assess(): void {
    if (this.isEjected) return;
    const missing = this.discovery.missing();
    this.shared.first.lifecycle.apply(
      missing === undefined ? { kind: 'ready' } : { kind: 'impaired', ...missing },
    );
  }

  private recheck(): void {
    this.health.readmit();
    if (this.discovery.missing() === undefined) this.assess();
    else this.discovery.again();
  }
}
