import { isDeepStrictEqual } from 'node:util';
import type { ServerConfig } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { Group } from './group.ts';
import type { ReplicaSettings } from './replica.ts';
import { Server, type ServerEvents } from './server.ts';
import type { Client } from './upstream.ts';

/** What an edit of the configuration did. */
export interface Changes {
  started: Server[];
  /** Those that go on running under new rules. */
  changed: Server[];
  stopped: Server[];
}

/** All servers, by name, in the order of the configuration, and the groups that they form. */
export class Servers {
  private readonly settings: ReplicaSettings;
  private readonly events: ServerEvents;
  private byName = new Map<string, Server>();
  private byGroup = new Map<string, Group>();
  /** Those that left, while their last calls are under way. */
  private readonly retiring = new Set<Server>();

  constructor(settings: ReplicaSettings, events: ServerEvents) {
    this.settings = settings;
    this.events = events;
  }

  get(name: string): Server | undefined {
    return this.byName.get(name);
  }

  group(name: string): Group | undefined {
    return this.byGroup.get(name);
  }

  all(): Server[] {
    return [...this.byName.values()];
  }

  /** In the order in which their first servers stand in the configuration. */
  groups(): Group[] {
    return [...this.byGroup.values()];
  }

  /**
   * Makes the servers those of the configuration. One that need not be started anew for it keeps its connections;
   * the others finish their calls, behind the back of the new ones.
   */
  apply(configs: readonly ServerConfig[]): Changes {
    const before = this.byName;
    const changes: Changes = { started: [], changed: [], stopped: [] };
    this.byName = new Map();
    for (const config of configs) {
      if (!config.enabled) continue;
      const present = before.get(config.name);
      const isSame = isDeepStrictEqual(present?.config, config);
      const stays = present !== undefined && (isSame || present.reconfigure(config));
      const server = stays ? present : new Server(config, this.settings, this.events);
      if (!stays && present !== undefined) server.succeed(present);
      if (!stays) changes.started.push(server);
      else if (!isSame) changes.changed.push(server);
      this.byName.set(config.name, server);
    }
    this.formGroups();
    changes.stopped = [...before.values()].filter((server) => this.byName.get(server.name) !== server);
    for (const server of changes.stopped) void this.retire(server);
    return changes;
  }

  /** Starts those that are not to wait for their first use. Fails with the first that cannot be, where `abort` is set. */
  async start(servers: readonly Server[], abort: boolean): Promise<void> {
    const start = async (server: Server) => {
      await server.discover();
      if (abort) throwIfFailed(server);
    };
    const sequential = async () => {
      for (const server of servers) if (server.config.startup === 'sequential') await start(server);
    };
    const parallel = servers.filter(({ config }) => config.startup === 'parallel');
    await Promise.all([sequential(), ...parallel.map(start)]);
  }

  /** A client is gone. */
  release(client: Client): void {
    for (const server of this.byName.values()) server.release(client);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.all(), ...this.retiring].map((server) => server.stop()));
  }

  private formGroups(): void {
    const members = Map.groupBy(this.byName.values(), (server) => server.group);
    const before = this.byGroup;
    this.byGroup = new Map();
    for (const [name, servers] of members) {
      const group = before.get(name) ?? new Group(name);
      group.join(servers);
      this.byGroup.set(name, group);
    }
  }

  private async retire(server: Server): Promise<void> {
    this.retiring.add(server);
    await server.retire();
    this.retiring.delete(server);
  }
}

function throwIfFailed(server: Server): void {
  for (const { condition } of server.replicas) {
    if (condition.state === 'ready' || condition.state === 'degraded') continue;
    const why = condition.reason?.message ?? `Server "${server.name}" is ${condition.state}.`;
    throw new SwitchboardError('server_start_failed', `${why} (onStartFailure is "abort")`, {
      cause: condition.reason,
      data: { server: server.name },
    });
  }
}
