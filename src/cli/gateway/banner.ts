import { identity } from '../../self-identity.ts';
import { DEFAULT_URL } from '../defaults.ts';

export interface Listening {
  /** On this machine. */
  url: string;
  publicUrl?: string | undefined;
  auth: boolean;
  config: string;
}

export function banner(address: Listening): string {
  const { url, publicUrl, auth, config } = address;
  const endpoint = `${publicUrl ?? url}/mcp`;
  return [
    `Switchboard ${identity().version}`,
    '',
    `  endpoint   ${endpoint}`,
    ...(publicUrl === undefined || publicUrl === url ? [] : [`  listens    ${url}`]),
    `  config     ${config} (edits take effect while it runs)`,
    '',
    ...(auth ? keyAdvice(address) : []),
    `  Paste into your MCP client (Claude Code, Cursor)${auth ? ', with the key' : ''}:`,
    `    ${snippet(endpoint, auth)}`,
    '  or:',
    `    ${claudeCommand(endpoint, auth)}`,
    '',
    '  Servers:',
  ].join('\n');
}

/** The entry of a client that sends a key. */
export function snippet(endpoint: string, auth: boolean): string {
  const headers = auth ? { headers: { Authorization: 'Bearer <key>' } } : {};
  return JSON.stringify({ mcpServers: { switchboard: { type: 'http', url: endpoint, ...headers } } });
}

export function claudeCommand(endpoint: string, auth: boolean): string {
  const header = auth ? ' --header "Authorization: Bearer <key>"' : '';
  return `claude mcp add --transport http switchboard ${endpoint}${header}`;
}

function keyAdvice({ url }: Listening): string[] {
  const local = url.replace('//0.0.0.0', '//127.0.0.1').replace('//[::]', '//[::1]');
  const address = local === DEFAULT_URL ? '' : ` --url ${local}`;
  return [
    '  Every request needs a key. Make one for each client, as this user on this machine:',
    `    switchboard key add my-client --project default --role caller${address}`,
    '',
  ];
}
