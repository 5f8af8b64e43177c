import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ServerConfig } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { Connection, type ConnectionSettings, type LiveUpstream, type Word } from './connection.ts';
import { discover, type Item, type Offer, type OfferKind, offerKinds } from './discovery.ts';
import { relayedCapabilities, type ServerFacts } from './handshake.ts';
import { ServerLog } from './log.ts';
import type { Client, Upstream } from './upstream.ts';

export type ServerState = 'idle' | 'starting' | 'ready' | 'failed' | 'stopped';

/** What the rest of the program hears of its servers. */
export interface ServerEvents {
  stateChanged(server: Server): void;
  /** What the server offers of these kinds is known anew. */
  offerChanged(server: Server, kinds: OfferKind[]): void;
  /** A connection is open that knows nothing of what clients asked for before. */
  connected(server: Server, connection: Connection): void;
  disconnected(upstream: Upstream): void;
  notified(server: Server, word: Word): void;
  asked(server: Server, word: Word): void;
}

/** After a failed start, lists do not start the server again before this time has passed. */
const RETRY_AFTER_MS = 10_000;
/** A server that announces changes without end is asked at most this often. */
const REDISCOVER_EVERY_MS = 200;
/** The calls of a server that left the configuration may take this long. */
const RETIRE_MS = 30_000;

const kindsOfNotification: Record<string, OfferKind[]> = {
  'notifications/tools/list_changed': ['tools'],
  'notifications/resources/list_changed': ['resources', 'templates'],
  'notifications/prompts/list_changed': ['prompts'],
};

/** One configured MCP server as we see it: its state, what it offers, and the way to it. */
export class Server {
  readonly config: ServerConfig;
  readonly log = new ServerLog();
  private readonly settings: ConnectionSettings;
  private readonly events: ServerEvents;
  private readonly shared: Connection;
  private readonly ofClients = new Map<Client, Connection>();
  private discovering: Promise<void> | undefined;
  private readonly dirty = new Set<OfferKind>();
  private rediscovery: NodeJS.Timeout | undefined;
  private failedAt = 0;
  state: ServerState = 'idle';
  /** Why it is not ready. */
  error: SwitchboardError | undefined;
  since = new Date();
  /** What it offers, as far as is known; kept when the connection is lost. */
  offer: Offer | undefined;
  /** Whether all of its lists were asked for once. */
  private isSeen = false;
  facts: ServerFacts | undefined;

  constructor(config: ServerConfig, settings: ConnectionSettings, events: ServerEvents) {
    this.config = config;
    this.settings = settings;
    this.events = events;
    this.shared = this.newConnection(relayedCapabilities, {
      starting: () => this.enter('starting'),
      opened: (live) => this.opened(live),
      lost: (error) => this.lost(error),
    });
  }

  get name(): string {
    return this.config.name;
  }

  /** The connection that this client's requests take. */
  connectionFor(client: Client, capabilities: object): Connection {
    // The shared one of a stopped server says that it was stopped; a new one would start it.
    if (this.config.isolation === 'shared' || this.state === 'stopped') return this.shared;
    let connection = this.ofClients.get(client);
    if (connection === undefined) {
      connection = this.newConnection(capabilities, {
        starting() {},
        opened() {},
        lost: (error) => this.log.add(error.message),
      });
      this.ofClients.set(client, connection);
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
        .catch((error: Error) => this.log.add(error.message));
    }
  }

  /** Whether a list has to wait for this server: it was never seen, and has not failed lately. */
  get isUnseen(): boolean {
    return !this.isSeen && this.state !== 'stopped' && Date.now() - this.failedAt > RETRY_AFTER_MS;
  }

  /** Starts the server if need be and learns what it offers. Never throws: the state tells how it went. */
  async discover(): Promise<void> {
    try {
      await this.shared.open();
      await this.discovering;
    } catch {
      // `lost` has noted it.
    }
  }

  /** Takes nothing new, lets the calls under way finish, though not for ever, and stops. */
  async retire(): Promise<void> {
    this.enter('stopped');
    const drained = Promise.all([...this.connections()].map((connection) => connection.drained()));
    const patience = new AbortController();
    const enough = delay(RETIRE_MS, undefined, { signal: patience.signal, ref: false }).catch(() => {});
    await Promise.race([drained, enough]);
    patience.abort();
    await this.stop();
  }

  async stop(): Promise<void> {
    this.enter('stopped');
    clearTimeout(this.rediscovery);
    await Promise.all([...this.connections()].map((connection) => connection.close()));
    this.ofClients.clear();
  }

  private newConnection(
    capabilities: object,
    lifecycle: { starting(): void; opened(live: LiveUpstream): void; lost(error: SwitchboardError): void },
  ): Connection {
    const connection: Connection = new Connection(this.config, this.settings, capabilities, this.log, {
      ...lifecycle,
      opened: (live) => {
        lifecycle.opened(live);
        this.events.connected(this, connection);
      },
      lost: (error, upstream) => {
        lifecycle.lost(error);
        if (upstream !== undefined) this.events.disconnected(upstream);
      },
      notified: (word) => this.notified(word),
      asked: (word) => this.events.asked(this, word),
    });
    return connection;
  }

  private opened(live: LiveUpstream): void {
    this.facts = live.facts;
    this.error = undefined;
    this.discovering = this.learn(live, offerKinds, false).then(() => {
      this.discovering = undefined;
    });
  }

  private lost(error: SwitchboardError): void {
    this.error = error;
    this.failedAt = Date.now();
    this.enter('failed');
  }

  private enter(state: ServerState): void {
    if (this.state === 'stopped' || this.state === state) return;
    this.state = state;
    this.since = new Date();
    this.events.stateChanged(this);
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
    if (this.state === 'stopped' || live.upstream.isGone) return;
    this.isSeen = true;
    for (const failure of failures) this.log.add(failure);
    this.error =
      failures.length === 0 ? undefined : new SwitchboardError('server_protocol_error', failures.join('; '));
    if (this.state === 'starting') this.enter('ready');
  }

  /** What a server announced is passed on even where the list is the same: only the server knows what it meant. */
  private learned(kind: OfferKind, items: Item[], announced: boolean): void {
    if (this.state === 'stopped') return;
    const before = this.offer ?? { tools: [], resources: [], templates: [], prompts: [] };
    this.offer = { ...before, [kind]: items };
    if (announced || !isDeepStrictEqual(before[kind], items)) this.events.offerChanged(this, [kind]);
  }
}
