import type { ServerConfig } from '../config.ts';
import type { DisabledServer } from '../gateway/unlisted.ts';
import type { Offer } from '../upstreams/lists.ts';
import type { Server } from '../upstreams/server.ts';
import type { ServerSnapshot } from '../upstreams/server-snapshot.ts';
import type { ListedServer } from './listed-server.ts';

/** The disabled servers of a project and what they offered, to explain why a tool or prompt is missing. */
export class DisabledServers {
  private readonly recall: (config: ServerConfig) => ServerSnapshot | undefined;
  private servers = new Map<string, { listed: ListedServer; offered: ReadonlySet<string> }>();

  /** `recall` returns the last persisted snapshot of a server. */
  constructor(recall: (config: ServerConfig) => ServerSnapshot | undefined) {
    this.recall = recall;
  }

  /** `stopped`: servers that were in use until now. */
  update(all: readonly ListedServer[], stopped: readonly Server[]): void {
    const before = this.servers;
    const offerOf = ({ name, config }: ListedServer) =>
      stopped.find((server) => server.name === name)?.offer ?? this.recall(config)?.offer;
    this.servers = new Map(
      all
        .filter(({ isEnabled }) => !isEnabled)
        .map((listed) => {
          const offered = before.get(listed.name)?.offered ?? namesIn(offerOf(listed));
          return [listed.name, { listed, offered }];
        }),
    );
  }

  /** `project`: the value for `-P` in suggested commands, if they need one. */
  *all(project: string | undefined): Generator<DisabledServer> {
    for (const [name, { listed, offered }] of this.servers) {
      const why = `its server "${name}" is ${stateOf(listed, project === undefined ? '' : ` -P ${project}`)}`;
      yield { name, prefix: listed.config.prefix ?? name, offered, why };
    }
  }
}

function stateOf({ name, config, row, hosted }: ListedServer, where: string): string {
  if (hosted !== undefined) return `stopped; start it with: switchboard start ${name}${where}`;
  if (row === undefined && !config.enabled) return 'disabled in the configuration file';
  return `disabled; enable it with: switchboard server enable ${name}${where}`;
}

function namesIn(offer: Offer | undefined): Set<string> {
  return new Set([...(offer?.tools ?? []), ...(offer?.prompts ?? [])].map(({ name }) => String(name)));
}
