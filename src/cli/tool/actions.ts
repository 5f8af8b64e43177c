import type { ToolView } from '../../api/views.ts';
import { allowedBy } from '../../config/tool-patterns.ts';
import { SwitchboardError } from '../../errors.ts';
import { callApi, projectPath } from '../api.ts';
import { complain, listTable, oneLine, print, printJson, summary } from '../output.ts';

interface Flags {
  url: string;
  project: string;
  json?: boolean;
}

/** Shows the tools that clients see, or all that there are. */
export async function listTools({ url, project, json, all }: Flags & { all?: boolean }): Promise<void> {
  const { tools } = await callApi<{ tools: ToolView[] }>(url, 'GET', projectPath(project, 'tools'));
  const shown = tools.filter(({ enabled }) => all || enabled);
  if (json) printJson(shown);
  else if (shown.length === 0) print('no tools');
  else print(listTable(shown.map((tool) => toolRow(tool, all === true))));
}

/** Switches a tool, or all that fit a pattern now. */
export async function switchTool(name: string, enabled: boolean, flags: Flags): Promise<void> {
  const isPattern = name.includes('*');
  const fitting = isPattern ? await toolsFitting(name, flags) : [];
  // Qualified names stay as they are while others are switched.
  const names = isPattern
    ? fitting.filter((tool) => tool.enabled !== enabled).map(({ qualified_name: qualified }) => qualified)
    : [name];
  const views: ToolView[] = [];
  for (const tool of names) {
    const path = projectPath(flags.project, 'tools', tool);
    const view = await callApi<ToolView>(flags.url, 'PATCH', path, { body: { enabled } }).catch((error) => {
      // What a pattern fits by chance need not be possible.
      if (!isPattern || !isConflict(error)) throw error;
      complain(`note: ${error.message}`);
    });
    if (view === undefined) continue;
    views.push(view);
    if (!flags.json) print(`${view.tool} of ${view.server} is ${view.enabled ? 'on' : 'off'}`);
  }
  if (flags.json) printJson(isPattern ? views : views[0]);
  else if (names.length === 0) print(alreadyText(fitting, enabled));
}

function isConflict(error: unknown): error is SwitchboardError {
  return error instanceof SwitchboardError && error.code === 'conflict';
}

function alreadyText(fitting: ToolView[], enabled: boolean): string {
  const tools = fitting.map(({ tool, server }) => `${tool} of ${server}`);
  return `nothing to switch: already ${enabled ? 'on' : 'off'}: ${tools.join(', ')}`;
}

/** By the name that clients see, the qualified one, or the server's own: which of them is listed depends on the others. */
async function toolsFitting(pattern: string, flags: Flags): Promise<ToolView[]> {
  const { tools } = await callApi<{ tools: ToolView[] }>(
    flags.url,
    'GET',
    projectPath(flags.project, 'tools'),
  );
  const fits = allowedBy([pattern]);
  const found = tools.filter(({ name, qualified_name: qualified, tool }) =>
    [name, qualified, tool].some((known) => fits({ name: known })),
  );
  if (found.length > 0) return found;
  throw new SwitchboardError(
    'unknown_tool',
    `No tool in project "${flags.project}" fits ${JSON.stringify(pattern)}.`,
    { data: { tool: pattern } },
  );
}

function toolRow({ name, server, enabled, description }: ToolView, withSwitch: boolean): string[] {
  return [name, server, ...(withSwitch ? [enabled ? 'on' : 'off'] : []), oneLine(summary(description))];
}
