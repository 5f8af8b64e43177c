import type { ServerTest, ServerView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { exitCodes } from '../exit.ts';
import {
  complain,
  counted,
  listTable,
  offerText,
  oneLine,
  print,
  printJson,
  table,
  tellMoved,
} from '../output.ts';
import { isConfirmed } from '../prompt.ts';
import { newServer, type Reach, type ServerChangeFlags, type ServerFlags, serverChanges } from './flags.ts';
import { serverNotes, stateText } from './text.ts';

interface Flags {
  url: string;
  project: string;
  json?: boolean;
}

/** Starting a server may mean to download it first. */
const TEST_MS = 10 * 60_000;

export async function listServers({ url, project, json }: Flags): Promise<void> {
  const path = projectPath(project, 'servers');
  const { servers } = await callApi<{ servers: ServerView[] }>(url, 'GET', path);
  const now = new Date();
  if (json) printJson(servers);
  else if (servers.length === 0) print('no servers');
  else print(listTable(servers.map((server) => serverRow(server, now))));
}

export async function showServer(name: string, { url, project, json }: Flags): Promise<void> {
  const server = await callApi<ServerView>(url, 'GET', projectPath(project, 'servers', name));
  if (json) printJson(server);
  else print(serverText(server));
}

export async function addServer(
  name: string,
  command: string[],
  flags: Flags & ServerFlags & { disabled?: boolean; test?: boolean },
): Promise<number> {
  const body = newServer(name, command, flags);
  const server = await callApi<ServerView>(flags.url, 'POST', projectPath(flags.project, 'servers'), {
    body,
  });
  tellMoved(server);
  const isTested = flags.test !== false && server.enabled;
  if (!flags.json) {
    print(`added server ${server.name} to project ${server.project}${server.enabled ? '' : ' (disabled)'}`);
    return isTested ? testServer(name, flags) : exitCodes.ok;
  }
  const test = isTested ? await connectTo(name, flags) : null;
  printJson({ ...server, test });
  return test === null ? exitCodes.ok : exitCodeOfTest(test);
}

export async function changeServer(
  name: string,
  command: string[],
  flags: Flags & ServerChangeFlags,
): Promise<void> {
  const path = projectPath(flags.project, 'servers', name);
  const present = await callApi<ServerView>(flags.url, 'GET', path);
  const body = serverChanges(present, command, flags);
  const server = await callApi<ServerView>(flags.url, 'PATCH', path, { body, version: present.version });
  tellMoved(server);
  if (flags.json) printJson(server);
  else print(serverText(server));
}

export async function switchServer(name: string, enabled: boolean, flags: Flags): Promise<void> {
  const path = projectPath(flags.project, 'servers', name);
  const server = await callApi<ServerView>(flags.url, 'PATCH', path, { body: { enabled } });
  if (flags.json) printJson(server);
  else print(`${server.name} is ${server.enabled ? 'enabled' : 'disabled'}`);
}

export async function removeServer(name: string, flags: Flags & { yes?: boolean }): Promise<number> {
  const question = `Remove the server ${name} from the project ${flags.project}?`;
  if (!(await isConfirmed(question, flags, 'goes-on'))) {
    complain('Nothing was removed.');
    return exitCodes.failed;
  }
  await callApi(flags.url, 'DELETE', projectPath(flags.project, 'servers', name));
  if (flags.json) printJson({ removed: name });
  else print(`removed server ${name}`);
  return exitCodes.ok;
}

/** Connects to a server, apart from what runs, and says how that went. */
export async function testServer(name: string, flags: Flags): Promise<number> {
  const result = await connectTo(name, flags);
  if (flags.json) printJson(result);
  else if (result.ok) print(testText(name, result));
  else complain(`${name} cannot be used: ${oneLine(result.error ?? 'it did not say why')}`);
  return exitCodeOfTest(result);
}

function connectTo(name: string, { url, project }: Flags): Promise<ServerTest> {
  return callApi(url, 'POST', projectPath(project, 'servers', name, 'test'), { timeoutMs: TEST_MS });
}

function exitCodeOfTest({ ok }: ServerTest): number {
  return ok ? exitCodes.ok : exitCodes.failed;
}

function serverRow(server: ServerView, now: Date): string[] {
  const { name, state, transport, tool_count } = server;
  const tools = tool_count === null ? '' : counted(tool_count, 'tool');
  return [name, stateText(state), transport, sourceText(server), tools, serverNotes(server, now)];
}

function sourceText({ source, product }: ServerView): string {
  return source === 'product' ? `product ${product}` : source;
}

export function testText(name: string, test: ServerTest): string {
  const { name: itself, version } = test.server_info ?? {};
  const said = [itself, version].filter((part) => part !== undefined).map(oneLine);
  const facts = [...(said.length === 0 ? [] : [said.join(' ')]), `${Math.round(test.duration_ms)} ms`];
  return `${name} answers: ${offerText(test)} (${facts.join(', ')})`;
}

export function serverText(server: ServerView): string {
  const config = server.config as Reach;
  const each = (what: string, values: Record<string, string> = {}, separator = '=') =>
    Object.entries(values).map(([name, value], index) => [index === 0 ? what : '', name + separator + value]);
  const notes = serverNotes(server, new Date());
  const rows: [string, string | null | undefined][] = [
    ['name', server.name],
    ['project', server.project],
    ['source', sourceText(server)],
    ['description', server.description],
    ['state', notes === '' ? stateText(server.state) : `${stateText(server.state)}: ${notes}`],
    ['enabled', server.enabled ? 'yes' : 'no'],
    ['transport', server.transport],
    ['command', config.command === undefined ? undefined : commandText(config.command, config.args)],
    ['cwd', config.cwd],
    ['endpoint', config.url],
  ];
  const settings: [string, string | null | undefined][] = [
    ['group', server.group],
    ['replicas', server.replica_count === 1 ? undefined : String(server.replica_count)],
    ['startup', server.startup],
    ['isolation', server.isolation],
    ['era', server.era === 'auto' ? undefined : server.era],
    ['concurrency', String(server.concurrency)],
    ['timeout', `${server.timeout_ms} ms, ${server.max_timeout_ms} ms at most`],
    ['idle stop', server.idle_stop_ms === 0 ? undefined : `after ${server.idle_stop_ms} ms`],
    ['prefix', server.prefix],
    ['allowed tools', server.tools?.allow?.join(', ')],
    ['denied tools', server.tools?.deny?.join(', ')],
  ];
  const known = (list: typeof rows) =>
    list.flatMap(([what, value]) => (value === null || value === undefined ? [] : [[what, oneLine(value)]]));
  return table([
    ...known(rows),
    ...each('env', config.env),
    ...each('headers', config.headers, ': '),
    ...each('labels', server.labels),
    ...known(settings),
  ]);
}

/** As it could be typed. */
function commandText(command: string, args: string[] = []): string {
  return [command, ...args]
    .map((word) => (/^[\w@%+=:,./${}-]+$/.test(word) ? word : JSON.stringify(word)))
    .join(' ');
}
