import type { SwitchboardError } from '../errors.ts';
import { type Condition, overall } from './condition.ts';
import type { Connection } from './connection.ts';
import type { ReplicaContext } from './connection-context.ts';
import type { Client, ClientDescription } from './request.ts';
import type { SharedConnections } from './shared-connections.ts';
import type { Slots } from './slots.ts';

/** All connections to one replica: those that clients share, and those that single clients have, each for itself. */
export class Connections {
  private readonly isolates: boolean;
  private readonly shared: SharedConnections;
  private readonly context: ReplicaContext<Connection>;
  private readonly byOwner = new Map<Client, Connection>();

  /** `isolates`: each client has an instance of its own. */
  constructor(isolates: boolean, shared: SharedConnections, context: ReplicaContext<Connection>) {
    this.isolates = isolates;
    this.shared = shared;
    this.context = context;
  }

  /** What others are to see: where clients have instances of their own, those count too. */
  get condition(): Condition {
    const { condition } = this.shared;
    if (this.byOwner.size === 0) return condition;
    return overall([condition, ...this.owned().map(({ lifecycle }) => lifecycle.condition)]);
  }

  /** Every connection that is there now. */
  all(): Connection[] {
    return [...this.shared.all, ...this.byOwner.values()];
  }

  /** Those that this client's requests may take. */
  of(client: Client): Connection[] {
    const own = this.byOwner.get(client);
    return own === undefined ? this.shared.all : [...this.shared.all, own];
  }

  /** All slots that calls take here: connections may share them. */
  slots(): Set<Slots> {
    return new Set(this.all().map(({ slots }) => slots));
  }

  /** Why no call of this client can go here now; undefined where one can. */
  refusal(client: Client): SwitchboardError | undefined {
    return (this.byOwner.get(client) ?? this.shared.for(client.era)).refusal;
  }

  /** The connection that this client's requests take. */
  for(client: Client, able: ClientDescription): Connection {
    // The shared one of a stopped server says that it was stopped; a new one would start it.
    if (!this.isolates || this.shared.condition.state === 'stopped') return this.shared.for(client.era);
    let own = this.byOwner.get(client);
    if (own === undefined) {
      own = this.connect(client, able);
      this.byOwner.set(client, own);
    }
    return own;
  }

  /** The same when it is open. Which one it is may come out when the server is reached. */
  async opened(client: Client, able: ClientDescription): Promise<Connection> {
    for (;;) {
      const connection = this.for(client, able);
      try {
        await connection.open();
        if (!this.isOutdated(connection, client)) return connection;
      } catch (error) {
        if (!this.isOutdated(connection, client)) throw error;
      }
    }
  }

  /** Whether this client does not take this connection any more: it is known by now which eras the server speaks. */
  isOutdated(connection: Connection, { era }: Client): boolean {
    return connection.owner === undefined && connection !== this.shared.for(era);
  }

  /** A client is gone, and its connection ends with it. True where it had one. */
  release(client: Client): boolean {
    const own = this.byOwner.get(client);
    this.byOwner.delete(client);
    own?.close().catch(() => {});
    return own !== undefined;
  }

  retry(): void {
    this.shared.retry();
    for (const connection of this.owned()) connection.retry();
  }

  async close(): Promise<void> {
    await Promise.all([this.shared.close(), ...this.owned().map((connection) => connection.close())]);
    this.byOwner.clear();
  }

  private owned(): Connection[] {
    return [...this.byOwner.values()];
  }

  private connect(owner: Client, { capabilities }: ClientDescription): Connection {
    const own = this.context.connect(
      { owner, capabilities, known: this.shared.knownFor(owner.era) },
      {
        opened: ({ facts }) => {
          own.lifecycle.apply({ kind: 'ready' });
          this.shared.ownOpened(owner.era, facts.era);
        },
        failed: ({ message }) => this.context.listener.log(message),
      },
    );
    return own;
  }
}
