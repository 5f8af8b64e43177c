import { isDeepStrictEqual } from 'node:util';
import { settlesWithin } from '../channels/timing.ts';
import { type ServerConfig, toolFilter } from '../config.ts';
import { type Condition, overall, type State } from './condition.ts';
import type { Connection } from './connection.ts';
import type { UpstreamMessage } from './connection-context.ts';
import type { Freshness, Offer, OfferKind } from './lists.ts';
import { ServerLog } from './log.ts';
import { union } from './offers.ts';
import { Replica } from './replica.ts';
import type { Client } from './request.ts';
import type { ServerFacts } from './server-facts.ts';
import type { ServerSnapshot } from './server-snapshot.ts';
import type { Project, ReplicaSettings } from './settings.ts';
import type { Upstream } from './upstream.ts';

export interface Origin {
  readonly server: Server;
  readonly replica: Replica;
  readonly connection: Connection;
}

export interface ServerMessage extends Origin, UpstreamMessage {}

export interface ServerEvents {
  /** The state of a replica, its reason or its next try changed. */
  stateChanged(server: Server, replica: Replica, from: State): void;
  /** Lists of these kinds were fetched. */
  offerChanged(server: Server, kinds: OfferKind[]): void;
  /** A connection was opened, without the subscriptions and log level of earlier ones. */
  connected(origin: Origin): void;
  /** All requests in both directions are over. */
  disconnected(origin: Origin, upstream: Upstream): void;
  notificationReceived(word: ServerMessage): void;
  requestReceived(word: ServerMessage): void;
  /** A line was added to its log. */
  logged(server: Server, line: string): void;
  /** A line about calls that failed because their server was not available. */
  callsFailed(project: Project, line: string): void;
}

/** How long calls in flight may take after their server left the configuration. */
const RETIRE_MS = 30_000;

/** One configured MCP server with its replicas. */
export class Server {
  readonly name: string;
  readonly project: Project;
  readonly log: ServerLog;
  readonly replicas: readonly Replica[];
  private readonly events: ServerEvents;
  private readonly redact: ReplicaSettings['redact'];
  private readonly snapshot: ServerSnapshot | undefined;
  private union: Offer | undefined;
  config: ServerConfig;

  /** Until it is connected, it offers what the server of that name offered before (`inherited`), or else the `snapshot`. */
  constructor(
    config: ServerConfig,
    settings: ReplicaSettings,
    events: ServerEvents,
    inherited: Offer | undefined,
    snapshot?: ServerSnapshot,
  ) {
    this.name = config.name;
    this.project = settings.project;
    this.redact = settings.redact;
    this.log = new ServerLog(settings.redact);
    this.config = config;
    this.events = events;
    this.snapshot = snapshot;
    const before = inherited ?? snapshot?.offer;
    this.replicas = Array.from({ length: config.replicas }, (_, index) =>
      this.newReplica(index + 1, settings, before),
    );
  }

  /** A server without a group forms its own. */
  get group(): string {
    return this.config.group ?? this.name;
  }

  /** What all replicas offer. Kept when connections are lost. */
  get offer(): Offer | undefined {
    if (this.union === undefined) {
      const known = this.replicas.flatMap(({ discovery }) => discovery.known?.offer ?? []);
      if (known.length > 0) this.union = union(known);
    }
    return this.union;
  }

  /** Whether it has this tool, but the configuration excludes it. */
  leavesOut(tool: string): boolean {
    const isOffered = toolFilter(this.config.tools);
    return isOffered?.(tool) === false && this.offer?.tools.some(({ name }) => name === tool) === true;
  }

  /** The first problem with what the server sent about itself. Its log has all. */
  get warning(): string | undefined {
    const [first, ...more] = new Set(this.replicas.flatMap(({ problems }) => problems));
    if (first === undefined) return undefined;
    // It may contain long names.
    const shown = this.redact(first).slice(0, 500);
    return more.length === 0 ? shown : `${shown} (its log has more)`;
  }

  get facts(): ServerFacts | undefined {
    return this.replicas.find(({ facts }) => facts !== undefined)?.facts;
  }

  /** The ids of all Switchboards behind it. */
  get instances(): string[] {
    return this.replicas.flatMap(({ facts }) => facts?.instances ?? []);
  }

  get hasSnapshot(): boolean {
    return this.snapshot !== undefined;
  }

  get instructions(): string | undefined {
    return this.facts === undefined ? this.snapshot?.instructions : this.facts.instructions;
  }

  get extensions(): unknown {
    return this.facts === undefined ? this.snapshot?.extensions : this.facts.capabilities.extensions;
  }

  /** Whether all lists of some replica were requested once. */
  get isDiscovered(): boolean {
    return this.replicas.some(({ discovery }) => discovery.isComplete);
  }

  /** Whether lists should wait for this server: it was not discovered yet, and has not failed either. */
  get isUndiscovered(): boolean {
    if (this.isDiscovered) return false;
    return this.replicas.some(
      ({ condition }) => condition.state === 'idle' || condition.state === 'starting',
    );
  }

  /** Starts it if necessary and fetches its lists. Never rejects: the conditions have the reasons. */
  async discover(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.discover()));
  }

  /** The shortest TTL of all replicas, and whether the list is the same for all clients. */
  freshness(kind: OfferKind): Freshness {
    const all = this.replicas.map(({ discovery }) => discovery.freshness(kind));
    return {
      ttlMs: Math.min(...all.map(({ ttlMs }) => ttlMs)),
      isPublic: all.every(({ isPublic }) => isPublic),
    };
  }

  /** Fetches again what has expired, because a client lists it. */
  freshen(): void {
    for (const replica of this.replicas) replica.freshen();
  }

  /** Retries now, instead of at the next scheduled try. */
  retry(): void {
    for (const { connections } of this.replicas) connections.retry();
  }

  /** Starts it if necessary, and resolves when one replica was discovered or all have failed. */
  discovered(): Promise<void> {
    return new Promise((resolve) => {
      const tries = this.replicas.map(async (replica) => {
        await replica.discover();
        if (replica.discovery.isComplete) resolve();
      });
      void Promise.all(tries).then(() => resolve());
    });
  }

  get condition(): Condition {
    return overall(this.replicas.map(({ connections }) => connections.condition));
  }

  connections(): Connection[] {
    return this.replicas.flatMap(({ connections }) => connections.all());
  }

  connectionsOf(client: Client): Connection[] {
    return this.replicas.flatMap(({ connections }) => connections.of(client));
  }

  /** `isOnly`: no other client uses this server. Otherwise shared connections are not notified. */
  rootsChanged(client: Client, isOnly: boolean): void {
    for (const { owner, current } of this.connectionsOf(client)) {
      if (current?.facts.era === 'legacy' && (owner === client || isOnly))
        current.upstream.notify('notifications/roots/list_changed');
    }
  }

  /** A client is gone. `as`: the client that it was taken for. */
  release(client: Client, as?: Client): void {
    for (const replica of this.replicas) replica.release(client, as);
  }

  /** Applies a changed configuration while it runs. Returns false if it must be restarted instead. */
  reconfigure(config: ServerConfig): boolean {
    if (!isDeepStrictEqual(fixedPart(this.config), fixedPart(config))) return false;
    this.config = config;
    for (const replica of this.replicas) replica.reconfigure(config);
    return true;
  }

  /** Takes no new calls, waits a while for those in flight, and stops. */
  async retire(): Promise<void> {
    for (const connection of this.connections()) connection.retire();
    const slots = this.replicas.flatMap(({ connections }) => [...connections.slots()]);
    await settlesWithin(Promise.all(slots.map((each) => each.drained())), RETIRE_MS, { ref: false });
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
      notificationReceived: (connection, event) =>
        events.notificationReceived({ ...at(connection), ...event }),
      requestReceived: (connection, event) => events.requestReceived({ ...at(connection), ...event }),
      log: (line) => {
        this.log.add(config.replicas === 1 ? line : `[${number}] ${line}`);
        events.logged(this, line);
      },
    });
    return replica;
  }

  /** Equal replicas announce the same change; it is reported once. */
  private offerChanged(kind: OfferKind, announced: boolean): void {
    const before = this.union?.[kind] ?? [];
    this.union = undefined;
    const after = this.offer?.[kind] ?? [];
    // Replicas keep the old items if nothing has changed.
    const isSame = before.length === after.length && before.every((item, index) => item === after[index]);
    if (announced || !isSame) this.events.offerChanged(this, [kind]);
  }
}

/** What cannot change while a server runs. */
function fixedPart({ transport, isolation, era, replicas, secrets, project }: ServerConfig) {
  return { transport, isolation, era, replicas, secrets, isInProject: project !== undefined };
}
