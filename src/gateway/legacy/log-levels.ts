import type { Connection } from '../../upstreams/connection.ts';
import type { Server } from '../../upstreams/server.ts';
import { mostTalkative } from '../logging.ts';
import type { Scope } from '../scope.ts';
import { allWithin } from '../within.ts';
import { Session } from './caller.ts';

const PATIENCE_MS = 1_000;

/**
 * How loud servers are to be. Those of the legacy era are told once, for all of their clients, and each client gets what it
 * wants of that; those of the modern era are told with every request.
 */
export class LogLevels {
  private readonly viewers: (server: Server) => readonly Session[];
  /** The loudest that clients of the modern era have wanted each server to be. */
  private readonly loudest = new WeakMap<Server, string>();

  constructor(viewers: (server: Server) => readonly Session[]) {
    this.viewers = viewers;
  }

  /** Tells a connection. Settles when its server knows. */
  tell(server: Server, connection: Connection): Promise<void> {
    const { owner } = connection;
    return connection.setLogLevel(owner instanceof Session ? owner.logLevel : this.of(server));
  }

  /** A client of the legacy era has said how loud servers are to be, or has gone. */
  changed(session: Session): void {
    for (const server of session.scope.servers()) {
      for (const connection of server.connectionsOf(session)) void this.tell(server, connection);
    }
  }

  /** A client of the modern era wants servers to be as loud as this. Settles when they know; undefined where they do. */
  louder(scope: Scope, level: string): Promise<void> | undefined {
    const told: Promise<void>[] = [];
    for (const server of scope.servers()) {
      const loudest = mostTalkative([this.loudest.get(server), level])!;
      if (this.loudest.get(server) === loudest) continue;
      this.loudest.set(server, loudest);
      for (const connection of server.connections()) told.push(this.tell(server, connection));
    }
    if (told.length === 0) return undefined;
    // A server that takes its time to hear of it keeps nobody from calling another.
    return allWithin(told, PATIENCE_MS);
  }

  private of(server: Server): string | undefined {
    const wanted = this.viewers(server).map(({ logLevel }) => logLevel);
    return mostTalkative([this.loudest.get(server), ...wanted]);
  }
}
