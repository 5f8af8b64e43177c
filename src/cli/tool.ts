import { callApi, projectPath } from './api.ts';
import { oneLine, print, printJson, summary, table } from './output.ts';
import type { ToolView } from './views.ts';

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
  else print(table(shown.map((tool) => toolRow(tool, all === true))));
}

export async function switchTool(tool: string, enabled: boolean, flags: Flags): Promise<void> {
  const path = projectPath(flags.project, 'tools', tool);
  const view = await callApi<ToolView>(flags.url, 'PATCH', path, { body: { enabled } });
  if (flags.json) printJson(view);
  else print(`${view.tool} of ${view.server} is ${view.enabled ? 'on' : 'off'}`);
}

function toolRow({ name, server, enabled, description }: ToolView, withSwitch: boolean): string[] {
  return [name, server, ...(withSwitch ? [enabled ? 'on' : 'off'] : []), oneLine(summary(description))];
}
