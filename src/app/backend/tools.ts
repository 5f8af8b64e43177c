import type { Backend } from '../../api/backend.ts';
import type { ToolView } from '../../api/views.ts';
import type { NamedTool } from '../../catalog/catalog.ts';
import { SwitchboardError } from '../../errors.ts';
import type { LiveProject } from '../../projects/live-project.ts';
import { change, type Parts } from './context.ts';

export function toolsBackend(parts: Parts): Backend['tools'] {
  const { projects } = parts;
  return {
    async list(project) {
      const live = projects.get(project);
      await live.scope.listable();
      return allTools(live);
    },
    async switch(project, tool, enabled) {
      const live = projects.get(project);
      await live.scope.discovered();
      const { group, server, tool: own } = find(live, tool);
      if (enabled) checkOffered(live, group ?? server, own);
      await change(parts, live, (store) => store.projects.setSwitch(live.id, group ?? server, own, enabled));
      return find(live, tool, { owner: group ?? server, own });
    },
  };
}

/** What a server leaves out by its own configuration, a switch cannot bring back. */
function checkOffered(live: LiveProject, group: string, tool: string): void {
  const members = live.servers.groups().find(({ name }) => name === group)?.members ?? [];
  const having = members.filter(({ offer }) => offer?.tools.some(({ name }) => name === tool));
  const [first] = having;
  if (first === undefined || !having.every((server) => server.leavesOut(tool))) return;
  throw new SwitchboardError(
    'conflict',
    `The tool ${JSON.stringify(tool)} is off by the setting "tools" of the server "${first.name}": change it there.`,
    { data: { tool, server: first.name } },
  );
}

/** Those that clients see under the names that they see, the others under their qualified ones. */
function allTools(live: LiveProject): ToolView[] {
  const seen = new Map(live.scope.catalog.namedTools.map((tool) => [keyOf(tool), tool]));
  return live.scope.unswitched().namedTools.map((tool) => {
    const visible = seen.get(keyOf(tool));
    return visible === undefined ? viewOf(tool, false) : viewOf(visible, true);
  });
}

/** By its public or qualified name; `known` is what it was found to be, because names change with what is switched. */
function find(live: LiveProject, name: string, known?: { owner: string; own: string }): ToolView {
  const tools = allTools(live);
  const found =
    known === undefined
      ? (tools.find((tool) => tool.name === name) ??
        tools.find((tool) => tool.qualified_name === name) ??
        onlyOne(tools.filter(({ tool }) => tool === name)))
      : tools.find(({ tool, group, server }) => tool === known.own && (group ?? server) === known.owner);
  if (found !== undefined) return found;
  throw new SwitchboardError(
    'unknown_tool',
    `There is no tool ${JSON.stringify(name)} in project "${live.name}".`,
    { data: { tool: name } },
  );
}

function onlyOne<Value>(values: Value[]): Value | undefined {
  return values.length === 1 ? values[0] : undefined;
}

function keyOf({ place, item }: NamedTool): string {
  return `${place}\n${String(item.name)}`;
}

function viewOf({ listed, qualified, group, server, item }: NamedTool, enabled: boolean): ToolView {
  return {
    name: enabled ? (listed ?? qualified) : qualified,
    qualified_name: qualified,
    server,
    group: group === server ? null : group,
    tool: String(item.name),
    title: textOrNull(item.title),
    description: textOrNull(item.description),
    enabled,
    input_schema: item.inputSchema ?? null,
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
