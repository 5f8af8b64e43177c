import { isDeepStrictEqual } from 'node:util';
import type { ServerConfig } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import { Group } from './group.ts';
import type { ServerSnapshot } from './remembered.ts';
import { Server, type ServerEvents } from './server.ts';
import type { Project, ReplicaSettings } from './settings.ts';

/** What an edit of the configuration did. */
export interface Changes {
  started: Server[];
  /** Those that go on running under new rules. */
  changed: Server[];
  stopped: Server[];
}

/** All servers of a project, by name, in the order in which they are written down, and the groups that they form. */
export class Servers {
  private readonly settings: ReplicaSettings;
  private readonly events: ServerEvents;
  private readonly recall: (config: ServerConfig) => ServerSnapshot | undefined;
  private byName = new Map<string, Server>();
  private byGroup = new Map<string, Group>();
  /** Those that left, while their last calls are under way, and when they are gone. */
  private readonly retiring = new Map<Server, Promise<void>>();

  /** `recall` tells what a server said of itself before this start. */
  constructor(
    settings: ReplicaSettings,
    events: ServerEvents,
    recall: (config: ServerConfig) => ServerSnapshot | undefined = () => undefined,
  ) {
    this.settings = settings;
    this.events = events;
    this.recall = recall;
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

  /** The same without a copy, for whoever looks at all of them with every request. */
  each(): Iterable<Server> {
    return this.byName.values();
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

  /** Settles when those that left are gone. */
  async retired(): Promise<void> {
    await Promise.all(this.retiring.values());
  }

  async stop(): Promise<void> {
    await Promise.all([...this.all(), ...this.retiring.keys()].map((server) => server.stop()));
  }

  private make(config: ServerConfig, before: Server | undefined): Server {
    const remembered = before === undefined ? this.recall(config) : undefined;
    return new Server(config, this.settings, this.events, before?.offer, remembered);
  }

  private formGroups(): void {
    const members = Map.groupBy(this.byName.values(), (server) => server.group);
    const before = this.byGroup;
    this.byGroup = new Map();
    for (const [name, servers] of members) {
      const group =
        before.get(name) ??
        new Group(name, this.project, (line) => this.events.callsFailed(this.project, line));
      group.join(servers);
      this.byGroup.set(name, group);
    }
  }
}

/** Starts those that are not to wait for their first use. Fails with the first that cannot be, where `abort` is set. */
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
