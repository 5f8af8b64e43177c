import { type Names, publicNames } from '../catalog/names.ts';
import { toolFilter } from '../config.ts';
import { isObject } from '../json.ts';
import type { Group } from '../upstreams/group.ts';
import { type AgentTool, agentTool } from './toolbox.ts';

type Item = Record<string, unknown>;

interface LocalTool {
  tool: AgentTool;
  group: Group;
  own: string;
}

export interface LocalTools {
  byName: ReadonlyMap<string, LocalTool>;
  /** Names that hide other names. */
  warnings: readonly string[];
}

/** Set by a Switchboard on each tool that it lists. */
const SERVER_META_KEY = 'dev.switchboard/server';

/** The tools of all servers. If names clash, the last one wins. */
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
    return [`The tool "${own}" of server "${server}" is hidden by the same name of server "${winner}".`];
  });
  return { byName, warnings };
}

/** The tools of a group, each name once. The first wins. */
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

/** The original server if the tool comes from a Switchboard. */
function serverOf({ _meta: meta }: Item, server: string): string {
  const behind = isObject(meta) ? meta[SERVER_META_KEY] : undefined;
  return typeof behind === 'string' ? behind : server;
}
