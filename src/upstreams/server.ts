import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type ServerConfig, toolFilter } from '../config.ts';
import { type Condition, overall, type State } from './condition.ts';
import type { Connection } from './connection.ts';
import type { UpstreamMessage } from './connection-context.ts';
import type { Freshness, Offer, OfferKind } from './lists.ts';
import { ServerLog } from './log.ts';
import { union } from './offers.ts';
import type { ServerSnapshot } from './remembered.ts';
import { Replica } from './replica.ts';
import type { Client } from './request.ts';
import type { ServerFacts } from './server-facts.ts';
import type { Project, ReplicaSettings } from './settings.ts';
import type { Upstream } from './upstream.ts';

/** Where something happens. */
export interface Origin {
  readonly server: Server;
  readonly replica: Replica;
  readonly connection: Connection;
}

export interface ServerMessage extends Origin, UpstreamMessage {}

/** What the rest of the program hears of its servers. */
export interface ServerEvents {
  /** The state of a replica is another one, or the reason for it is. */
  stateChanged(server: Server, replica: Replica, from: State): void;
  /** What the server offers of these kinds is known anew. */
  offerChanged(server: Server, kinds: OfferKind[]): void;
  /** A connection is open that knows nothing of what clients asked for before. */
  connected(origin: Origin): void;
  /** What this upstream had asked and was asked is over. */
  disconnected(origin: Origin, upstream: Upstream): void;
  notificationReceived(word: ServerMessage): void;
  requestReceived(word: ServerMessage): void;
  /** A line for its log. */
  logged(server: Server, line: string): void;
  /** Calls failed because their server was not available: a line for whoever looks after the program. */
  callsFailed(project: Project, line: string): void;
}

/** The calls of a server that left the configuration may take this long. */
const RETIRE_MS = 30_000;

/** One configured MCP server: one replica of it, or several alike. */
export class Server {
  readonly name: string;
  readonly project: Project;
  readonly log: ServerLog;
  readonly replicas: readonly Replica[];
  private readonly events: ServerEvents;
  private readonly redact: ReplicaSettings['redact'];
  private readonly remembered: ServerSnapshot | undefined;
  private union: Offer | undefined;
  config: ServerConfig;

  /**
   * `inherited` is what the server of that name offered before, and `remembered` what it said of itself before this start:
   * both hold until this one is seen.
   */
  constructor(
    config: ServerConfig,
    settings: ReplicaSettings,
    events: ServerEvents,
    inherited: Offer | undefined,
    remembered?: ServerSnapshot,
  ) {
    this.name = config.name;
    this.project = settings.project;
    this.redact = settings.redact;
    this.log = new ServerLog(settings.redact);
    this.config = config;
    this.events = events;
    this.remembered = remembered;
    const before = inherited ?? remembered?.offer;
    this.replicas = Array.from({ length: config.replicas }, (_, index) =>
      this.newReplica(index + 1, settings, before),
    );
  }

  /** The group whose tools it offers; a server without one is a group of its own. */
  get group(): string {
    return this.config.group ?? this.name;
  }

  /** What it offers, as far as is known; kept when the connection is lost. */
  get offer(): Offer | undefined {
    if (this.union === undefined) {
      const known = this.replicas.flatMap(({ offer }) => (offer === undefined ? [] : [offer.offer]));
      if (known.length > 0) this.union = union(known);
    }
    return this.union;
  }

  /** Whether it has this tool, and its configuration leaves it out. */
  leavesOut(tool: string): boolean {
    const isOffered = toolFilter(this.config.tools);
    return isOffered?.(tool) === false && this.offer?.tools.some(({ name }) => name === tool) === true;
  }

  /** What of its words is cut or left out; undefined where nothing is. All of it stands in its log. */
  get warning(): string | undefined {
    const [first, ...more] = new Set(this.replicas.flatMap(({ problems }) => problems));
    if (first === undefined) return undefined;
    // The names of what it offers may be long.
    const shown = this.redact(first).slice(0, 500);
    return more.length === 0 ? shown : `${shown} (its log has more)`;
  }

  get facts(): ServerFacts | undefined {
    return this.replicas.find(({ facts }) => facts !== undefined)?.facts;
  }

  /** Where some replicas lead to Switchboards: the ids of all that are on the way. */
  get instances(): string[] {
    return this.replicas.flatMap(({ facts }) => facts?.instances ?? []);
  }

  /** Whether it is known what it offered before this start. */
  get isRemembered(): boolean {
    return this.remembered !== undefined;
  }

  /** What it tells models of itself. */
  get instructions(): string | undefined {
    return this.facts === undefined ? this.remembered?.instructions : this.facts.instructions;
  }

  get extensions(): unknown {
    return this.facts === undefined ? this.remembered?.extensions : this.facts.capabilities.extensions;
  }

  /** Whether some replica was asked for all of its lists. */
  get isSeen(): boolean {
    return this.replicas.some(({ isSeen }) => isSeen);
  }

  /** Whether a list has to wait for this server: it was never seen, and nothing is known against it. */
  get isUnseen(): boolean {
    if (this.isSeen) return false;
    return this.replicas.some(
      ({ condition }) => condition.state === 'idle' || condition.state === 'starting',
    );
  }

  /** Starts it if need be and learns what it offers. Never throws: the conditions tell how it went. */
  async discover(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.discover()));
  }

  /** How long its list holds, and whether it is the same for everybody, as far as all replicas say so. */
  freshness(kind: OfferKind): Freshness {
    const all = this.replicas.map((replica) => replica.freshness(kind));
    return {
      ttlMs: Math.min(...all.map(({ ttlMs }) => ttlMs)),
      isPublic: all.every(({ isPublic }) => isPublic),
    };
  }

  /** Somebody asks what it offers. */
  freshen(): void {
    for (const replica of this.replicas) replica.freshen();
  }

  /** What was in the way of it is gone: it is tried now, and not when its time has come. */
  retry(): void {
    for (const { connections } of this.replicas) connections.retry();
  }

  /** Starts it if need be, and settles when one replica has been seen, or none could be. */
  seen(): Promise<void> {
    return new Promise((resolve) => {
      const tries = this.replicas.map(async (replica) => {
        await replica.discover();
        if (replica.isSeen) resolve();
      });
      void Promise.all(tries).then(() => resolve());
    });
  }

  /** The one state that stands for all replicas. */
  get condition(): Condition {
    return overall(this.replicas.map(({ shown }) => shown));
  }

  /** Every connection that is there now. */
  connections(): Connection[] {
    return this.replicas.flatMap(({ connections }) => connections.all());
  }

  /** Those connections that this client's requests may take. */
  connectionsOf(client: Client): Connection[] {
    return this.replicas.flatMap(({ connections }) => connections.of(client));
  }

  /** What is shared is told only where there is no other client that it could be about. */
  rootsChanged(client: Client, isAlone: boolean): void {
    for (const { owner, current } of this.connectionsOf(client)) {
      if (current?.facts.era === 'legacy' && (owner === client || isAlone))
        current.upstream.notify('notifications/roots/list_changed');
    }
  }

  /** A client is gone: what was its own ends with it. `as`: whom it was taken for. */
  release(client: Client, as?: Client): void {
    for (const replica of this.replicas) replica.release(client, as);
  }

  /** Takes over a changed configuration while it runs; false where it has to be started anew for it. */
  reconfigure(config: ServerConfig): boolean {
    if (!isDeepStrictEqual(whatItRunsBy(this.config), whatItRunsBy(config))) return false;
    this.config = config;
    for (const replica of this.replicas) replica.reconfigure(config);
    return true;
  }

  /** Takes nothing new, lets the calls under way finish, though not for ever, and stops. */
  async retire(): Promise<void> {
    for (const connection of this.connections()) connection.retire();
    const slots = this.replicas.flatMap(({ connections }) => [...connections.slots()]);
    const drained = Promise.all(slots.map((each) => each.drained()));
    const patience = new AbortController();
    const enough = delay(RETIRE_MS, undefined, { signal: patience.signal, ref: false }).catch(() => {});
    await Promise.race([drained, enough]);
    patience.abort();
    await this.stop();
  }

  async stop(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.stop()));
  }

  private newReplica(number: number, settings: ReplicaSettings, before: Offer | undefined): Replica {
    const { config, events } = this;
    const at = (connection: Connection): Origin => ({ server: this, replica, connection });
    const replica: Replica = new Replica(number, config, settings, before, {
      stateChanged: (from) => events.stateChanged(this, replica, from),
      offerChanged: (kind, announced) => this.offerChanged(kind, announced),
      connected: (connection) => events.connected(at(connection)),
      disconnected: (connection, upstream) => events.disconnected(at(connection), upstream),
      notificationReceived: (connection, said) => events.notificationReceived({ ...at(connection), ...said }),
      requestReceived: (connection, said) => events.requestReceived({ ...at(connection), ...said }),
      log: (line) => {
        this.log.add(config.replicas === 1 ? line : `[${number}] ${line}`);
        events.logged(this, line);
      },
    });
    return replica;
  }

  /** Several replicas alike say the same thing; it is told once. */
  private offerChanged(kind: OfferKind, announced: boolean): void {
    const before = this.union?.[kind] ?? [];
    this.union = undefined;
    const after = this.offer?.[kind] ?? [];
    // Replicas keep the items that they had where nothing has changed.
    const isSame = before.length === after.length && before.every((item, index) => item === after[index]);
    if (announced || !isSame) this.events.offerChanged(this, [kind]);
  }
}

/** What cannot be changed while a server runs. */
function whatItRunsBy({ transport, isolation, era, replicas, secrets, project }: ServerConfig) {
  return { transport, isolation, era, replicas, secrets, isInProject: project !== undefined };
}
