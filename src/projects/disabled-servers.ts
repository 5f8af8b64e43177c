import type { ServerConfig } from '../config.ts';
import type { DisabledServer } from '../gateway/unlisted.ts';
import type { Offer } from '../upstreams/lists.ts';
import type { Server } from '../upstreams/server.ts';
import type { ServerSnapshot } from '../upstreams/server-snapshot.ts';
import type { ListedServer } from './listed-server.ts';

/** The servers of a project that are not used, and what they offered: whoever asks for that is told where it went. */
export class DisabledServers {
  private readonly recall: (config: ServerConfig) => ServerSnapshot | undefined;
  private servers = new Map<string, { listed: ListedServer; offered: ReadonlySet<string> }>();

  /** `recall` tells what a server said of itself before this start. */
  constructor(recall: (config: ServerConfig) => ServerSnapshot | undefined) {
    this.recall = recall;
  }

  /** `stopped` are those that were used until now. */
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

  /** `project` is what commands need to be told, if anything. */
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
