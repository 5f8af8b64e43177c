import { isDeepStrictEqual } from 'node:util';
import type { ServerConfig } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { Group } from './group.ts';
import { Server, type ServerEvents } from './server.ts';
import type { ServerSnapshot } from './server-snapshot.ts';
import type { Project, ReplicaSettings } from './settings.ts';

export interface Changes {
  started: Server[];
  /** Those that continue with a changed configuration. */
  changed: Server[];
  stopped: Server[];
}

/** All servers of a project, by name, in the order of the configuration, and their groups. */
export class Servers {
  private readonly settings: ReplicaSettings;
  private readonly events: ServerEvents;
  private readonly snapshotOf: (config: ServerConfig) => ServerSnapshot | undefined;
  private byName = new Map<string, Server>();
  private byGroup = new Map<string, Group>();
  /** Removed from the configuration, but still finishing calls. */
  private readonly retiring = new Map<Server, Promise<void>>();

  constructor(
    settings: ReplicaSettings,
    events: ServerEvents,
    snapshotOf: (config: ServerConfig) => ServerSnapshot | undefined = () => undefined,
  ) {
    this.settings = settings;
    this.events = events;
    this.snapshotOf = snapshotOf;
  }

  get project(): Project {
    return this.settings.project;
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

  /** Without a copy, for the hot path. */
  each(): Iterable<Server> {
    return this.byName.values();
  }

  /** In the order of their first servers. */
  groups(): Group[] {
    return [...this.byGroup.values()];
  }

  /** Applies a configuration. Servers that need no restart keep their connections; the others finish their calls first. */
  apply(configs: readonly ServerConfig[]): Changes {
    const before = this.byName;
    const changes: Changes = { started: [], changed: [], stopped: [] };
    this.byName = new Map();
    for (const config of configs) {
      if (!config.enabled) continue;
      const present = before.get(config.name);
      const isSame = isDeepStrictEqual(present?.config, config);
      const stays = present !== undefined && (isSame || present.reconfigure(config));
      const server = stays ? present : this.make(config, present);
      if (!stays) changes.started.push(server);
      else if (!isSame) changes.changed.push(server);
      this.byName.set(config.name, server);
    }
    this.formGroups();
    changes.stopped = [...before.values()].filter((server) => this.byName.get(server.name) !== server);
    for (const server of changes.stopped) {
      const gone = server.retire().finally(() => this.retiring.delete(server));
      this.retiring.set(server, gone);
    }
    return changes;
  }

  /** Resolves when those that left the configuration are gone. */
  async retired(): Promise<void> {
    await Promise.all(this.retiring.values());
  }

  async stop(): Promise<void> {
    await Promise.all([...this.all(), ...this.retiring.keys()].map((server) => server.stop()));
  }

  private make(config: ServerConfig, before: Server | undefined): Server {
    const snapshot = before === undefined ? this.snapshotOf(config) : undefined;
    return new Server(config, this.settings, this.events, before?.offer, snapshot);
  }

  private formGroups(): void {
    const members = Map.groupBy(this.byName.values(), (server) => server.group);
    const before = this.byGroup;
    this.byGroup = new Map();
    for (const [name, servers] of members) {
      const group =
        before.get(name) ??
        new Group(name, this.project, (line) => this.events.callsFailed(this.project, line));
      group.setMembers(servers);
      this.byGroup.set(name, group);
    }
  }
}

/** Starts the servers with `startup`. With `abort` set, rejects with the first that fails. */
export async function startServers(servers: readonly Server[], abort: boolean): Promise<void> {
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
