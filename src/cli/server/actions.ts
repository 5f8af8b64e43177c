import type { ServerTest, ServerView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { exitCodes } from '../exit.ts';
import type { ProjectFlags } from '../options.ts';
import {
  complain,
  counted,
  noteMovedSecrets,
  offerText,
  oneLine,
  print,
  printJson,
  printList,
  printResult,
  table,
} from '../output.ts';
import { removeConfirmed } from '../prompt.ts';
import { newServer, type Reach, type ServerChangeFlags, type ServerFlags, serverChanges } from './flags.ts';
import { serverNotes, stateText } from './text.ts';

/** Starting a server may download it first. */
const TEST_TIMEOUT_MS = 10 * 60_000;

export async function listServers(flags: ProjectFlags): Promise<void> {
  const path = projectPath(flags.project, 'servers');
  const { servers } = await callApi<{ servers: ServerView[] }>(flags.url, 'GET', path);
  const now = new Date();
  printList('servers', servers, (server) => serverRow(server, now), flags);
}

export async function showServer(name: string, flags: ProjectFlags): Promise<void> {
  const path = projectPath(flags.project, 'servers', name);
  const server = await callApi<ServerView>(flags.url, 'GET', path);
  printResult(server, serverText(server), flags);
}

export async function addServer(
  name: string,
  command: string[],
  flags: ProjectFlags & ServerFlags & { disabled?: boolean; test?: boolean },
): Promise<number> {
  const body = newServer(name, command, flags);
  const server = await callApi<ServerView>(flags.url, 'POST', projectPath(flags.project, 'servers'), {
    body,
  });
  noteMovedSecrets(server);
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
  flags: ProjectFlags & ServerChangeFlags,
): Promise<void> {
  const path = projectPath(flags.project, 'servers', name);
  const present = await callApi<ServerView>(flags.url, 'GET', path);
  const body = serverChanges(present, command, flags);
  const server = await callApi<ServerView>(flags.url, 'PATCH', path, { body, version: present.version });
  noteMovedSecrets(server);
  printResult(server, serverText(server), flags);
}

export async function switchServer(name: string, enabled: boolean, flags: ProjectFlags): Promise<void> {
  const path = projectPath(flags.project, 'servers', name);
  const server = await callApi<ServerView>(flags.url, 'PATCH', path, { body: { enabled } });
  printResult(server, `${server.name} is ${server.enabled ? 'enabled' : 'disabled'}`, flags);
}

export function removeServer(name: string, flags: ProjectFlags & { yes?: boolean }): Promise<number> {
  const question = `Remove the server ${name} from the project ${flags.project}?`;
  return removeConfirmed(flags, question, projectPath(flags.project, 'servers', name), 'server', name);
}

/** Connects separately from the running replicas. */
export async function testServer(name: string, flags: ProjectFlags): Promise<number> {
  const result = await connectTo(name, flags);
  if (flags.json) printJson(result);
  else if (result.ok) print(testText(name, result));
  else complain(`${name} cannot be used: ${oneLine(result.error ?? 'it gave no reason')}`);
  return exitCodeOfTest(result);
}

function connectTo(name: string, { url, project }: ProjectFlags): Promise<ServerTest> {
  return callApi(url, 'POST', projectPath(project, 'servers', name, 'test'), { timeoutMs: TEST_TIMEOUT_MS });
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
  const { name: ownName, version } = test.server_info ?? {};
  const names = [ownName, version].filter((part) => part !== undefined).map(oneLine);
  const facts = [...(names.length === 0 ? [] : [names.join(' ')]), `${Math.round(test.duration_ms)} ms`];
  return `${name} answers: ${offerText(test)} (${facts.join(', ')})`;
}

export function serverText(server: ServerView): string {
  const config = (server.config ?? {}) as Reach;
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

/** For display: quotes words with special characters. */
function commandText(command: string, args: string[] = []): string {
  return [command, ...args]
    .map((word) => (/^[\w@%+=:,./${}-]+$/.test(word) ? word : JSON.stringify(word)))
    .join(' ');
}
