import type { Connection } from './connection.ts';
import type { ReplicaContext } from './connection-context.ts';
import type { SharedConnections } from './shared-connections.ts';
import type { Client } from './upstream.ts';

/** Whoever can say what a client can do. Nobody asks for that unless a connection is opened for it. */
export interface Able {
  readonly capabilities: object;
}

/** The connections that single clients have to a replica, each for itself. */
export class OwnConnections {
  private readonly shared: SharedConnections;
  private readonly context: ReplicaContext;
  private readonly byClient = new Map<Client, Connection>();

  constructor(shared: SharedConnections, context: ReplicaContext) {
    this.shared = shared;
    this.context = context;
  }

  get all(): Connection[] {
    return [...this.byClient.values()];
  }

  get isEmpty(): boolean {
    return this.byClient.size === 0;
  }

  of(client: Client): Connection | undefined {
    return this.byClient.get(client);
  }

  /** That of this client, which is made if need be. */
  for(client: Client, able: Able): Connection {
    let connection = this.byClient.get(client);
    if (connection === undefined) {
      connection = this.make(client, able);
      this.byClient.set(client, connection);
    }
    return connection;
  }

  /** A client is gone, and its connection ends with it. True where it had one. */
  release(client: Client): boolean {
    const own = this.byClient.get(client);
    this.byClient.delete(client);
    own?.close().catch(() => {});
    return own !== undefined;
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((connection) => connection.close()));
    this.byClient.clear();
  }

  private make(owner: Client, { capabilities }: Able): Connection {
    const own = this.context.connect(
      { owner, capabilities, known: this.shared.knownFor(owner.era) },
      {
        opened: ({ facts }) => {
          own.lifecycle.happens({ kind: 'ready' });
          this.shared.ownOpened(owner.era, facts.era);
        },
        failed: ({ message }) => this.context.log(message),
      },
    );
    return own;
  }
}
