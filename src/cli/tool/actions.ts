import type { ToolView } from '../../api/views.ts';
import { allowedBy } from '../../config/tool-patterns.ts';
import { SwitchboardError } from '../../errors.ts';
import { callApi, projectPath } from '../api.ts';
import type { ProjectFlags } from '../options.ts';
import { complain, oneLine, print, printJson, printList, summary } from '../output.ts';

export async function listTools(flags: ProjectFlags & { all?: boolean }): Promise<void> {
  const tools = (await toolsOf(flags)).filter(({ enabled }) => flags.all || enabled);
  printList('tools', tools, (tool) => toolRow(tool, flags.all === true), flags);
}

export async function switchTool(name: string, enabled: boolean, flags: ProjectFlags): Promise<void> {
  const isPattern = name.includes('*');
  const matching = isPattern ? await toolsMatching(name, flags) : [];
  // Switching a tool may change other names, but not qualified ones.
  const names = isPattern
    ? matching.filter((tool) => tool.enabled !== enabled).map(({ qualified_name: qualified }) => qualified)
    : [name];
  const views: ToolView[] = [];
  for (const tool of names) {
    const path = projectPath(flags.project, 'tools', tool);
    const view = await callApi<ToolView>(flags.url, 'PATCH', path, { body: { enabled } }).catch((error) => {
      // A pattern may match tools that cannot be switched.
      if (!isPattern || !isConflict(error)) throw error;
      complain(`note: ${error.message}`);
    });
    if (view === undefined) continue;
    views.push(view);
    if (!flags.json) print(`${view.tool} of ${view.server} is ${view.enabled ? 'enabled' : 'disabled'}`);
  }
  if (flags.json) printJson(isPattern ? views : views[0]);
  else if (names.length === 0) print(alreadyText(matching, enabled));
}

function isConflict(error: unknown): error is SwitchboardError {
  return error instanceof SwitchboardError && error.code === 'conflict';
}

function alreadyText(matching: ToolView[], enabled: boolean): string {
  const tools = matching.map(({ tool, server }) => `${tool} of ${server}`);
  return `nothing to change: already ${enabled ? 'enabled' : 'disabled'}: ${tools.join(', ')}`;
}

async function toolsOf({ url, project }: ProjectFlags): Promise<ToolView[]> {
  return (await callApi<{ tools: ToolView[] }>(url, 'GET', projectPath(project, 'tools'))).tools;
}

/** Matches the listed name, the qualified name, or the server's own name: which one is listed depends on other tools. */
async function toolsMatching(pattern: string, flags: ProjectFlags): Promise<ToolView[]> {
  const matches = allowedBy([pattern]);
  const found = (await toolsOf(flags)).filter(({ name, qualified_name: qualified, tool }) =>
    [name, qualified, tool].some((known) => matches({ name: known })),
  );
  if (found.length > 0) return found;
  throw new SwitchboardError(
    'unknown_tool',
    `No tool in project "${flags.project}" matches ${JSON.stringify(pattern)}.`,
    { data: { tool: pattern } },
  );
}

function toolRow({ name, server, enabled, description }: ToolView, withSwitch: boolean): string[] {
  return [name, server, ...(withSwitch ? [enabled ? 'on' : 'off'] : []), oneLine(summary(description))];
}
