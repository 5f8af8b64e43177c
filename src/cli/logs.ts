import { getApi } from './client.ts';
import { print, printJson } from './output.ts';

/** Shows the last lines of a server's log. */
export async function logs(server: string, flags: { url: string; json?: boolean }): Promise<void> {
  const path = `/projects/default/servers/${encodeURIComponent(server)}/logs`;
  const { lines } = (await getApi(flags.url, path)) as { lines: string[] };
  if (flags.json) printJson(lines);
  else if (lines.length > 0) print(lines.join('\n'));
}
