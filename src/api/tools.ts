import type { NamedTool } from '../catalog/catalog.ts';
import { SwitchboardError } from '../errors.ts';
import type { Scope } from '../gateway/scope.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { ok } from './http/reply.ts';
import { type Route, route } from './http/route.ts';
import { toolSwitch } from './inputs.ts';
import { applyChange } from './services.ts';
import { Sight } from './sight.ts';
import { type ToolView, toolList, toolView } from './views.ts';

export const toolRoutes: Route[] = [
  route('GET', '/projects/:project/tools', {
    operationId: 'listTools',
    summary: 'List all tools of a project, including disabled ones',
    action: 'see',
    answers: { 200: toolList },
    async handle({ services, sender, project }) {
      const { scope } = new Sight(services.projects, project, sender.principal);
      await scope.listable();
      return ok({ tools: toolsOf(scope) });
    },
  }),
  route('PATCH', '/projects/:project/tools/:tool', {
    operationId: 'switchTool',
    summary: 'Enable or disable a tool',
    action: 'operate',
    body: toolSwitch,
    answers: { 200: toolView },
    async handle({ services, sender, project, params, body: { enabled } }) {
      await project.scope.discovered();
      const { group, server, tool } = findTool(project, params.tool);
      const owner = group ?? server;
      if (enabled) checkOffered(project, owner, tool);
      await applyChange(services, sender, project, (store) =>
        store.projects.setSwitch(project.id, owner, tool, enabled),
      );
      // The switch may have changed its public name.
      const isSame = (view: ToolView) => view.tool === tool && (view.group ?? view.server) === owner;
      return ok(toolsOf(project.scope).find(isSame) ?? unknownTool(project, params.tool));
    },
  }),
];

/** A switch cannot enable a tool that the server's configuration excludes. */
function checkOffered(project: LiveProject, group: string, tool: string): void {
  const members = project.servers.groups().find(({ name }) => name === group)?.members ?? [];
  const having = members.filter(({ offer }) => offer?.tools.some(({ name }) => name === tool));
  const [first] = having;
  if (first === undefined || !having.every((server) => server.leavesOut(tool))) return;
  throw new SwitchboardError(
    'conflict',
    `The setting "tools" of the server "${first.name}" leaves out the tool ${JSON.stringify(tool)}: change that setting.`,
    { data: { tool, server: first.name } },
  );
}

/** Listed tools have their public names, the others their qualified names. */
function toolsOf(scope: Scope): ToolView[] {
  const visible = new Map(scope.catalog.namedTools.map((tool) => [keyOf(tool), tool]));
  return scope.unswitched().namedTools.map((tool) => {
    const seen = visible.get(keyOf(tool));
    return seen === undefined ? toolViewOf(tool, false) : toolViewOf(seen, true);
  });
}

/** By public name, by qualified name, or by the server's own name if it is unique. */
function findTool(project: LiveProject, name: string): ToolView {
  const tools = toolsOf(project.scope);
  const namesakes = tools.filter(({ tool }) => tool === name);
  return (
    tools.find((tool) => tool.name === name) ??
    tools.find((tool) => tool.qualified_name === name) ??
    (namesakes.length === 1 ? namesakes[0]! : unknownTool(project, name))
  );
}

function unknownTool({ name: project }: LiveProject, name: string): never {
  const message = `There is no tool ${JSON.stringify(name)} in project "${project}".`;
  throw new SwitchboardError('unknown_tool', message, { data: { tool: name } });
}

function keyOf({ qualifier, item }: NamedTool): string {
  return `${qualifier}\n${String(item.name)}`;
}

function toolViewOf({ listed, qualified, group, server, item }: NamedTool, enabled: boolean): ToolView {
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
