import { type Names, publicNames } from '../catalog/names.ts';
import { toolFilter } from '../config.ts';
import type { Group } from '../upstreams/group.ts';
import { agentTool, isItem } from './mcp-tools.ts';
import type { AgentTool } from './toolbox.ts';

type Item = Record<string, unknown>;

/** A tool, and whom to ask for it. */
interface LocalTool {
  tool: AgentTool;
  group: Group;
  /** What its server calls it. */
  own: string;
}

export interface LocalTools {
  byName: ReadonlyMap<string, LocalTool>;
  /** Names that hide other names. */
  warnings: readonly string[];
}

/** A Switchboard says so of each tool that it lists. */
const SERVER_META_KEY = 'dev.switchboard/server';

/** The tools of all servers. Of two with one name, the later one is offered. */
export function localTools(groups: readonly Group[], names: Names): LocalTools {
  const offered = groups.flatMap((group) =>
    toolsOf(group).map(({ server, item }) => ({ group, server, item, own: String(item.name) })),
  );
  const given = publicNames(
    offered.map(({ group, own }) => ({ server: group.name, prefix: group.name, name: own, isAlias: false })),
    { mode: 'last-wins', separator: '__', names },
  );
  const byName = new Map<string, LocalTool>();
  offered.forEach(({ group, server, item, own }, index) => {
    const name = given[index]!.listed;
    if (name !== undefined)
      byName.set(name, { tool: agentTool(name, item, serverOf(item, server)), group, own });
  });
  const warnings = offered.flatMap(({ own, server }, index) => {
    if (given[index]!.listed !== undefined) return [];
    const winner = byName.get(own)?.tool.server ?? 'another';
    return [`The tool "${own}" of server "${server}" is hidden by that of server "${winner}".`];
  });
  return { byName, warnings };
}

/** What a group offers, each name once; a server that lists a tool twice means the first. */
function toolsOf({ members }: Group): { server: string; item: Item }[] {
  const found = new Map<unknown, { server: string; item: Item }>();
  for (const { name: server, offer, config } of members) {
    const isOffered = toolFilter(config.tools);
    for (const item of offer?.tools ?? []) {
      if (typeof item.name !== 'string' || found.has(item.name) || isOffered?.(item.name) === false) continue;
      found.set(item.name, { server, item });
    }
  }
  return [...found.values()];
}

/** The one behind it, where it comes from a Switchboard. */
function serverOf({ _meta: meta }: Item, server: string): string {
  const behind = isItem(meta) ? meta[SERVER_META_KEY] : undefined;
  return typeof behind === 'string' ? behind : server;
}
