import type { ServerConfig } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { Candidate } from './balance.ts';
import { type Condition, overall, type State } from './condition.ts';
import { Connection, type ConnectionSettings, type LiveUpstream, type Word } from './connection.ts';
import type { Freshness, ListSettings, Offer, OfferKind } from './discovery.ts';
import { type KnownEra, rediscover, relayedCapabilities, type ServerFacts } from './handshake.ts';
import { Health } from './health.ts';
import { Learning } from './learning.ts';
import type { KnownOffer } from './offers.ts';
import type { Client, Upstream } from './upstream.ts';

/** Whose servers these are. */
export interface Project {
  readonly id: string;
  readonly name: string;
}

/** Whoever can say what a client can do. Nobody asks for that unless a connection is opened for it. */
export interface Able {
  readonly capabilities: object;
}

export interface ReplicaSettings extends ConnectionSettings {
  project: Project;
  /** So many failed calls in a row, and the replica is left out for a while; 0: never. */
  ejectAfter: number;
  ejectMs: number;
  /** How much of each of its lists is taken. */
  lists: ListSettings;
}

export interface ReplicaEvents {
  /** Its state is another one, or the reason for it is. */
  stateChanged(replica: Replica, from: State): void;
  /** What it offers of this kind is known anew. `announced`: the server said so, or is back. */
  offerChanged(kind: OfferKind, announced: boolean): void;
  /** A connection is open that knows nothing of what clients asked for before. */
  connected(replica: Replica, connection: Connection): void;
  disconnected(replica: Replica, upstream: Upstream): void;
  notified(replica: Replica, word: Word): void;
  asked(replica: Replica, word: Word): void;
  log(replica: Replica, line: string): void;
}

/** With it replicas can be told apart: `--port 900${SWITCHBOARD_REPLICA}`. */
const REPLICA_VARIABLE = 'SWITCHBOARD_REPLICA';

const kindsOfNotification: Record<string, OfferKind[]> = {
  'notifications/tools/list_changed': ['tools'],
  'notifications/resources/list_changed': ['resources', 'templates'],
  'notifications/prompts/list_changed': ['prompts'],
};

/** One running instance of a server: its connections, what it offers, and how it fares. */
export class Replica implements Candidate {
  /** Counted from 1. */
  readonly number: number;
  readonly server: string;
  private config: ServerConfig;
  private readonly settings: ReplicaSettings;
  private readonly events: ReplicaEvents;
  private readonly shared: Connection;
  private readonly ofClients = new Map<Client, Connection>();
  private readonly learning: Learning;
  private readonly health: Health;
  private lastUsed = 0;
  private rest: NodeJS.Timeout | undefined;
  /** What was told last. */
  private told: Condition | undefined;
  private starts = 0;
  private readonly known: KnownEra = { era: undefined, discovered: undefined };
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
      variable: (name, server) =>
        name === REPLICA_VARIABLE ? String(number) : settings.variable(name, server),
    };
    this.events = events;
    this.health = new Health(settings, (line) => this.log(line));
    this.shared = this.newConnection(undefined, relayedCapabilities, {
      changed: () => this.stateChanged(),
      opened: (live, wasBroken) => this.opened(live, wasBroken),
      recheck: () => this.recheck(),
      missed: () => this.learning.refresh(),
    });
    this.learning = new Learning(
      {
        timeoutMs: settings.connectTimeoutMs,
        backoff: settings.recovery.backoff,
        instance: settings.instance,
        limits: settings.lists,
      },
      () => this.shared.current,
      inherited,
      {
        learned: (kind, announced) => this.learned(kind, announced),
        settled: () => this.assess(),
        loops: (error) => this.loops(error),
        log: (line) => this.log(line),
      },
    );
  }

  get condition(): Condition {
    return this.shared.lifecycle.condition;
  }

  /** What others are to see: where clients have instances of their own, those count too. */
  get shown(): Condition {
    if (this.ofClients.size === 0) return this.condition;
    return overall([...this.connections()].map(({ lifecycle }) => lifecycle.condition));
  }

  get offer(): KnownOffer | undefined {
    return this.learning.known;
  }

  /** What of its own words is cut or left out, and why. */
  get problems(): string[] {
    return [...(this.facts?.problems ?? []), ...this.learning.problems];
  }

  /** Whether all of its lists were asked for once. */
  get isSeen(): boolean {
    return this.learning.isSeen;
  }

  /** How often it was started after the first time. */
  get restarts(): number {
    return Math.max(0, this.starts - 1);
  }

  /** Whether each client has an instance of its own. */
  get isolates(): boolean {
    return this.config.isolation === 'session';
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
    return this.isolates || this.shared.current !== undefined;
  }

  /** Settles when the connection that all share is there; undefined where it is not being opened. */
  get opening(): Promise<unknown> | undefined {
    return this.isolates ? undefined : this.shared.pending;
  }

  get isEjected(): boolean {
    return this.health.isEjected;
  }

  get hasRoom(): boolean {
    return this.isolates || this.shared.slots.hasRoom;
  }

  get load(): number {
    return this.shared.slots.used + this.shared.slots.queued;
  }

  /** Why no call of this client can go here now; undefined where one can. */
  refusal(client: Client): SwitchboardError | undefined {
    return (this.ofClients.get(client) ?? this.shared).refusal;
  }

  /** The connection that this client's requests take. */
  connectionFor(client: Client, able: Able): Connection {
    // The shared one of a stopped server says that it was stopped; a new one would start it.
    if (!this.isolates || this.condition.state === 'stopped') return this.shared;
    let connection = this.ofClients.get(client);
    if (connection === undefined) {
      const own = this.newConnection(client, able.capabilities, {
        changed: () => this.stateChanged(),
        opened: () => own.lifecycle.happens({ kind: 'ready' }),
        recheck() {},
        missed() {},
      });
      this.ofClients.set(client, own);
      connection = own;
    }
    return connection;
  }

  /** Every connection that is there now. */
  *connections(): Generator<Connection> {
    yield this.shared;
    yield* this.ofClients.values();
  }

  /** Those of them that this client's requests may take. */
  connectionsOf(client: Client): Connection[] {
    const own = this.ofClients.get(client);
    return own === undefined ? [this.shared] : [this.shared, own];
  }

  /** A client is gone: what was its own ends with it. `as`: whom it was taken for. */
  release(client: Client, as: Client = client): void {
    const own = this.ofClients.get(client);
    this.ofClients.delete(client);
    if (own !== undefined) {
      own.close().catch(() => {});
      this.stateChanged();
    }
    for (const connection of this.connectionsOf(as)) {
      for (const uri of connection.subscriptions.removeClient(client)) {
        connection.unfollow(uri).catch((error: Error) => this.log(error.message));
      }
    }
  }

  freshness(kind: OfferKind): Freshness {
    return this.learning.freshness(kind);
  }

  /** Why a list of it could not be had; undefined where it could. */
  unlisted(kind: OfferKind): string | undefined {
    return this.learning.failureOf(kind);
  }

  /** Somebody asks what it offers: what its server says is out of date is asked for again. */
  freshen(): void {
    this.learning.freshen();
    const { current } = this.shared;
    if (current?.facts.era !== 'modern') return;
    const { instance, connectTimeoutMs } = this.settings;
    rediscover(current.upstream, instance, this.known, connectTimeoutMs).then(
      (facts) => {
        if (facts !== undefined && this.shared.current === current) Object.assign(current.facts, facts);
      },
      (error: Error) => {
        if (this.shared.current === current) this.failedToLearn(error);
      },
    );
  }

  /** Starts it if need be and learns what it offers. Never throws: the condition tells how it went. */
  async discover(): Promise<void> {
    try {
      await this.shared.open();
      await this.learning.done;
    } catch {
      // The condition says why.
    }
  }

  /** Starts it, if it only waits for somebody to use it. */
  wake(): void {
    if (this.condition.state === 'idle') void this.discover();
  }

  retry(): void {
    for (const connection of this.connections()) connection.retry();
  }

  /** Takes over what can be changed while it runs. */
  reconfigure(config: ServerConfig): void {
    this.config = config;
    for (const { slots } of this.connections()) slots.resize(config.concurrency);
    this.scheduleRest();
  }

  /** A call is on its way, or came back. */
  used(): void {
    if (this.config.idleStopMs > 0) this.lastUsed = Date.now();
  }

  callSucceeded(): void {
    if (this.health.succeeded()) this.assess();
  }

  /** A call went out and did not come back as it should. `isItsFault`: it had all the time that it may have. */
  callFailed(error: SwitchboardError, isItsFault: boolean): void {
    const ejection = isItsFault ? this.health.failed(error) : this.health.note(error);
    if (ejection !== undefined) this.shared.lifecycle.happens({ kind: 'impaired', ...ejection });
  }

  /** A call was not even sent. */
  callRefused(): void {
    this.health.refused();
  }

  drained(): Promise<unknown> {
    return Promise.all([...this.connections()].map((connection) => connection.drained()));
  }

  /** Takes nothing new; what is under way goes on until stop(). */
  retire(): void {
    for (const connection of this.connections()) connection.retire();
  }

  async stop(): Promise<void> {
    this.learning.stop();
    clearTimeout(this.rest);
    await Promise.all([...this.connections()].map((connection) => connection.close()));
    this.ofClients.clear();
  }

  private newConnection(
    owner: Client | undefined,
    capabilities: object,
    events: {
      changed(): void;
      opened(live: LiveUpstream, wasBroken: boolean): void;
      recheck(): void;
      missed(): void;
    },
  ): Connection {
    const connection: Connection = new Connection(
      this.config,
      this.settings,
      this.known,
      owner,
      capabilities,
      {
        ...events,
        opened: (live, wasBroken) => {
          events.opened(live, wasBroken);
          this.events.connected(this, connection);
        },
        log: (line) => this.log(line),
        disconnected: (upstream) => this.events.disconnected(this, upstream),
        notified: (word) => this.notified(word),
        asked: (word) => this.events.asked(this, word),
      },
    );
    return connection;
  }

  private log(line: string): void {
    this.events.log(this, line);
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
    this.events.stateChanged(this, from);
  }

  private opened(live: LiveUpstream, wasBroken: boolean): void {
    this.starts++;
    this.facts = live.facts;
    this.health.reset();
    this.lastUsed = Date.now();
    this.scheduleRest();
    this.learning.begin(wasBroken);
  }

  private learned(kind: OfferKind, announced: boolean): void {
    if (this.condition.state !== 'stopped') this.events.offerChanged(kind, announced);
  }

  private failedToLearn(error: Error): void {
    if (error instanceof SwitchboardError && error.code === 'server_loop') this.loops(error);
    else this.log(error.message);
  }

  /** What it offers is our own, or will be when it comes round. */
  private loops(error: SwitchboardError): void {
    this.facts = undefined;
    this.shared.refuse(error);
    this.learning.forget();
  }

  /** Is it well? Where it is not, what is wrong is looked at again later. */
  private assess(): void {
    if (this.isEjected) return;
    const missing = this.learning.missing();
    this.shared.lifecycle.happens(
      missing === undefined ? { kind: 'ready' } : { kind: 'impaired', ...missing },
    );
  }

  private recheck(): void {
    this.health.readmit();
    if (this.learning.missing() === undefined) this.assess();
    else this.learning.again();
  }

  private notified(word: Word): void {
    const kinds = kindsOfNotification[word.message.method];
    if (kinds === undefined) this.events.notified(this, word);
    else this.learning.changed(kinds);
  }

  private scheduleRest(): void {
    clearTimeout(this.rest);
    const { idleStopMs } = this.config;
    if (idleStopMs === 0) return;
    const sinceUse = Date.now() - this.lastUsed;
    this.rest = setTimeout(() => this.restIfIdle(), Math.max(1, idleStopMs - sinceUse)).unref();
  }

  private restIfIdle(): void {
    const isIdle = Date.now() - this.lastUsed >= this.config.idleStopMs;
    if (this.shared.isBusy) this.lastUsed = Date.now();
    else if (isIdle && this.learning.done === undefined) {
      this.shared.rest();
      return;
    }
    this.scheduleRest();
  }
}
