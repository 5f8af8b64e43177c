import { callApi, projectPath } from './api.ts';
import { print, printJson } from './output.ts';

interface LogsFlags {
  url: string;
  project: string;
  json?: boolean;
}

/** Shows the last lines of a server's log. */
export async function logs(server: string, { url, project, json }: LogsFlags): Promise<void> {
  const path = projectPath(project, 'servers', server, 'logs');
  const { lines } = await callApi<{ lines: string[] }>(url, 'GET', path);
  if (json) printJson(lines);
  else if (lines.length > 0) print(lines.join('\n'));
}
