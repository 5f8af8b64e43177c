import { isDeepStrictEqual } from 'node:util';
import { backoffMs } from '../channels/backoff.ts';
import type { ServerConfig } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { Candidate } from './balance.ts';
import type { Condition, State } from './condition.ts';
import { Connection, type ConnectionSettings, type LiveUpstream, type Word } from './connection.ts';
import { discover, type Item, type OfferKind, offerKinds } from './discovery.ts';
import { relayedCapabilities, type ServerFacts } from './handshake.ts';
import { KnownOffer } from './offers.ts';
import type { Client, Upstream } from './upstream.ts';

export interface ReplicaSettings extends ConnectionSettings {
  /** So many failed calls in a row, and the replica is left out for a while; 0: never. */
  ejectAfter: number;
  ejectMs: number;
}

export interface ReplicaEvents {
  /** Its state is another one, or the reason for it is. */
  stateChanged(replica: Replica, from: State): void;
  /** What it offers of these kinds is known anew. `announced`: the server said so, or is back. */
  offerChanged(replica: Replica, kinds: OfferKind[], announced: boolean): void;
  /** A connection is open that knows nothing of what clients asked for before. */
  connected(replica: Replica, connection: Connection): void;
  disconnected(replica: Replica, upstream: Upstream): void;
  notified(replica: Replica, word: Word): void;
  asked(replica: Replica, word: Word): void;
  log(replica: Replica, line: string): void;
}

/** A server that announces changes without end is asked at most this often. */
const REDISCOVER_EVERY_MS = 200;

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
  private discovering: Promise<void> | undefined;
  private readonly dirty = new Set<OfferKind>();
  private rediscovery: NodeJS.Timeout | undefined;
  private known: KnownOffer | undefined;
  /** Why its lists are not all known. */
  private unlisted: { reason: SwitchboardError; failures: number } | undefined;
  private failedCalls = 0;
  private ejectedUntil = 0;
  private refusedCalls = 0;
  private lastUsed = 0;
  private rest: NodeJS.Timeout | undefined;
  private starts = 0;
  /** Whether all of its lists were asked for once. */
  isSeen = false;
  facts: ServerFacts | undefined;

  constructor(number: number, config: ServerConfig, settings: ReplicaSettings, events: ReplicaEvents) {
    this.number = number;
    this.server = config.name;
    this.config = config;
    this.settings = settings;
    this.events = events;
    this.shared = this.newConnection(relayedCapabilities, {
      changed: (from) => this.stateChanged(from),
      opened: (live, wasBroken) => this.opened(live, wasBroken),
      recheck: () => this.recheck(),
    });
  }

  get condition(): Condition {
    return this.shared.lifecycle.condition;
  }

  get offer(): KnownOffer | undefined {
    return this.known;
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

  get isLive(): boolean {
    return this.isolates || this.shared.current !== undefined;
  }

  get isEjected(): boolean {
    return this.ejectedUntil > 0 && this.ejectedUntil > Date.now();
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
  connectionFor(client: Client, capabilities: object): Connection {
    // The shared one of a stopped server says that it was stopped; a new one would start it.
    if (!this.isolates || this.condition.state === 'stopped') return this.shared;
    let connection = this.ofClients.get(client);
    if (connection === undefined) {
      const own = this.newConnection(capabilities, {
        changed() {},
        opened: () => own.lifecycle.happens({ kind: 'ready' }),
        recheck() {},
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

  isShared(connection: Connection): boolean {
    return connection === this.shared;
  }

  /** The client that a connection is opened for; undefined for the one that all share. */
  ownerOf(connection: Connection): Client | undefined {
    if (connection === this.shared) return undefined;
    for (const [client, own] of this.ofClients) if (own === connection) return client;
    return undefined;
  }

  /** A client is gone: what was its own ends with it. */
  release(client: Client): void {
    const own = this.ofClients.get(client);
    this.ofClients.delete(client);
    own?.close().catch(() => {});
    for (const uri of this.shared.subscriptions.removeClient(client)) {
      this.shared.current?.upstream
        .request('resources/unsubscribe', { uri }, this.settings.connectTimeoutMs)
        .catch((error: Error) => this.log(error.message));
    }
  }

  /** Starts it if need be and learns what it offers. Never throws: the condition tells how it went. */
  async discover(): Promise<void> {
    try {
      await this.shared.open();
      await this.discovering;
    } catch {
      // The condition says why.
    }
  }

  /** Starts it, if it only waits for somebody to use it. */
  wake(): void {
    if (this.condition.state === 'idle') void this.discover();
  }

  /** Takes what is known of one like it for its own, until it says something itself. */
  inherit({ known, facts }: Replica): void {
    if (known === undefined) return;
    this.known = known;
    this.facts = facts;
    this.isSeen = true;
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
    if (this.failedCalls === 0) return;
    this.failedCalls = 0;
    if (this.ejectedUntil === 0) return;
    this.ejectedUntil = 0;
    this.assess();
  }

  /** A call went out and did not come back as it should. */
  callFailed(error: SwitchboardError): void {
    this.log(`a call failed: ${error.message}`);
    this.failedCalls++;
    const { ejectAfter, ejectMs } = this.settings;
    if (ejectAfter === 0 || this.failedCalls < ejectAfter || this.shared.current === undefined) return;
    this.ejectedUntil = Date.now() + ejectMs;
    this.assess(
      new SwitchboardError(
        'server_unavailable',
        `${this.failedCalls} calls in a row failed: ${error.message}`,
      ),
    );
  }

  /** A call was not even sent. Only counted: a client in a loop must not push everything else out of the log. */
  callRefused(): void {
    this.refusedCalls++;
  }

  drained(): Promise<unknown> {
    return Promise.all([...this.connections()].map((connection) => connection.drained()));
  }

  /** Takes nothing new; what is under way goes on until stop(). */
  retire(): void {
    for (const { lifecycle } of this.connections()) lifecycle.happens({ kind: 'stops' });
  }

  async stop(): Promise<void> {
    clearTimeout(this.rediscovery);
    clearTimeout(this.rest);
    await Promise.all([...this.connections()].map((connection) => connection.close()));
    this.ofClients.clear();
  }

  private newConnection(
    capabilities: object,
    events: {
      changed(from: State): void;
      opened(live: LiveUpstream, wasBroken: boolean): void;
      recheck(): void;
    },
  ): Connection {
    const connection: Connection = new Connection(this.config, this.settings, capabilities, {
      ...events,
      opened: (live, wasBroken) => {
        events.opened(live, wasBroken);
        this.events.connected(this, connection);
      },
      log: (line) => this.log(line),
      disconnected: (upstream) => this.events.disconnected(this, upstream),
      notified: (word) => this.notified(word),
      asked: (word) => this.events.asked(this, word),
    });
    return connection;
  }

  private log(line: string): void {
    this.events.log(this, line);
  }

  private stateChanged(from: State): void {
    if (this.condition.state !== from && this.refusedCalls > 0) {
      this.log(`${this.refusedCalls} calls were refused meanwhile`);
      this.refusedCalls = 0;
    }
    this.events.stateChanged(this, from);
  }

  private opened(live: LiveUpstream, wasBroken: boolean): void {
    this.starts++;
    this.facts = live.facts;
    this.ejectedUntil = 0;
    this.failedCalls = 0;
    this.unlisted = undefined;
    this.lastUsed = Date.now();
    this.scheduleRest();
    this.discovering = this.learn(live, offerKinds, wasBroken).then(() => {
      this.discovering = undefined;
    });
  }

  /** Is it well? Where it is not, what is wrong is looked at again later. */
  private assess(ejection?: SwitchboardError): void {
    const { lifecycle } = this.shared;
    if (ejection !== undefined) {
      lifecycle.happens({ kind: 'impaired', reason: ejection, nextTry: this.ejectedUntil });
    } else if (this.unlisted !== undefined) {
      const { reason, failures } = this.unlisted;
      const nextTry = Date.now() + backoffMs(failures, this.settings.recovery.backoff, Math.random());
      lifecycle.happens({ kind: 'impaired', reason, nextTry });
    } else {
      lifecycle.happens({ kind: 'ready' });
    }
  }

  private recheck(): void {
    this.ejectedUntil = 0;
    const live = this.shared.current;
    if (this.unlisted === undefined || live === undefined) this.assess();
    else void this.learn(live, offerKinds, false);
  }

  private notified(word: Word): void {
    const kinds = kindsOfNotification[word.message.method];
    if (kinds === undefined) {
      this.events.notified(this, word);
      return;
    }
    for (const kind of kinds) this.dirty.add(kind);
    this.rediscovery ??= setTimeout(
      () => this.rediscover(),
      this.discovering === undefined ? 0 : REDISCOVER_EVERY_MS,
    );
  }

  private async rediscover(): Promise<void> {
    const live = this.shared.current;
    const kinds = [...this.dirty];
    this.dirty.clear();
    if (live !== undefined) {
      await this.discovering;
      await this.learn(live, kinds, true);
    }
    this.rediscovery =
      this.dirty.size === 0 ? undefined : setTimeout(() => this.rediscover(), REDISCOVER_EVERY_MS);
  }

  /**
   * Asks for the lists of these kinds, all at once, and takes each as it comes: one that is slow or fails keeps no
   * other back, and stays as it was.
   */
  private async learn(live: LiveUpstream, kinds: OfferKind[], announced: boolean): Promise<void> {
    const failures: string[] = [];
    await Promise.all(
      kinds.map(async (kind) => {
        try {
          const items = await discover(live, kind, this.settings.connectTimeoutMs);
          if (!live.upstream.isGone) this.learned(kind, items, announced);
        } catch (error) {
          failures.push(`its ${kind} could not be listed: ${(error as Error).message}`);
        }
      }),
    );
    if (live.upstream.isGone) return;
    this.isSeen = true;
    for (const failure of failures) this.log(failure);
    this.unlisted =
      failures.length === 0
        ? undefined
        : {
            reason: new SwitchboardError('server_protocol_error', failures.join('; ')),
            failures: (this.unlisted?.failures ?? 0) + 1,
          };
    if (!this.isEjected) this.assess();
  }

  /** What a server announced is passed on even where the list is the same: only the server knows what it meant. */
  private learned(kind: OfferKind, items: Item[], announced: boolean): void {
    if (this.condition.state === 'stopped') return;
    const before = this.known?.offer ?? { tools: [], resources: [], templates: [], prompts: [] };
    this.known = new KnownOffer({ ...before, [kind]: items });
    if (announced || !isDeepStrictEqual(before[kind], items))
      this.events.offerChanged(this, [kind], announced);
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
    else if (isIdle && this.discovering === undefined) {
      this.shared.rest();
      return;
    }
    this.scheduleRest();
  }
}
