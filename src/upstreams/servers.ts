import { isDeepStrictEqual } from 'node:util';
import type { ServerConfig } from '../config.ts';
import type { ConnectionSettings } from './connection.ts';
import { Server, type ServerEvents } from './server.ts';
import type { Client } from './upstream.ts';

/** All servers, by name, in the order of the configuration. */
export class Servers {
  private readonly settings: ConnectionSettings;
  private readonly events: ServerEvents;
  private byName = new Map<string, Server>();
  /** Those that left, while their last calls are under way. */
  private readonly retiring = new Set<Server>();

  constructor(settings: ConnectionSettings, events: ServerEvents) {
    this.settings = settings;
    this.events = events;
  }

  get(name: string): Server | undefined {
    return this.byName.get(name);
  }

  all(): Server[] {
    return [...this.byName.values()];
  }

  /**
   * Makes the servers those of the configuration. One whose configuration is as before keeps its connection;
   * the others finish their calls, behind the back of the new ones. Gives the names that came, changed or left.
   */
  apply(configs: readonly ServerConfig[]): { started: Server[]; stopped: Server[] } {
    const before = this.byName;
    const started: Server[] = [];
    this.byName = new Map();
    for (const config of configs) {
      if (!config.enabled) continue;
      const present = before.get(config.name);
      const same = present !== undefined && isDeepStrictEqual(present.config, config);
      const server = same ? present : new Server(config, this.settings, this.events);
      if (!same) started.push(server);
      this.byName.set(config.name, server);
    }
    const stopped = [...before.values()].filter((server) => this.byName.get(server.name) !== server);
    for (const server of stopped) void this.retire(server);
    for (const server of started) if (server.config.startup === 'parallel') void server.discover();
    return { started, stopped };
  }

  /** A client is gone. */
  release(client: Client): void {
    for (const server of this.byName.values()) server.release(client);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.all(), ...this.retiring].map((server) => server.stop()));
  }

  private async retire(server: Server): Promise<void> {
    this.retiring.add(server);
    await server.retire();
    this.retiring.delete(server);
  }
}
