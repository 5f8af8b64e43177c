import type { ServerView } from '../../api/views.ts';
import { callApi, projectPath } from '../api.ts';
import { DEFAULT_PROJECT, type Listable } from '../defaults.ts';
import { exitCodes } from '../exit.ts';
import { McpClient, projectNames } from '../mcp-client.ts';
import { complain, counted, jsonText, listTable, note, print, printJson, summary } from '../output.ts';
import { serverNotes, stateText } from '../server/text.ts';
import { type TargetFlags, withSwitchboard } from '../target.ts';

export interface LsFlags extends TargetFlags {
  project?: string;
  json?: boolean;
}

type Item = Record<string, unknown>;

const serverKey = 'dev.switchboard/server';

export async function ls(what: Listable, flags: LsFlags): Promise<number> {
  if (what === 'servers') {
    const { servers, projects } = await withSwitchboard(flags, (url) => listServers(url, flags.project));
    const now = new Date();
    const first = (server: ServerView) => (projects.length > 1 ? [server.project] : []);
    show(what, servers, (server) => [...first(server), ...serverRow(server, now)], flags);
    return exitCodes.ok;
  }
  const { items, missing } = await withSwitchboard(flags, (url) => listOffer(url, what, flags.project));
  reportMissing(missing, flags);
  show(what, items, (item) => itemRow(what, item), flags);
  return items.length === 0 && missing.some(hasFailed) ? exitCodes.failed : exitCodes.ok;
}

/** Reports servers whose items are missing, on stderr to keep stdout clean. */
function reportMissing(missing: ServerView[], { json }: LsFlags): void {
  if (missing.length === 0) return;
  if (json) {
    const unavailable = missing.map(({ project, name, state, error }) => ({
      project,
      server: name,
      state,
      error,
    }));
    complain(jsonText({ unavailable }));
    return;
  }
  for (const server of missing) note(missingText(server));
}

export function missingText(server: ServerView): string {
  const { name, project, state, error } = server;
  const which = project === DEFAULT_PROJECT ? name : `${name} of project ${project}`;
  const how = hasFailed(server)
    ? ` (${stateText(state)}): ${error ?? 'it gave no reason'}`
    : ': it is still starting';
  return `${which} is not included${how}`;
}

function isMissing({ enabled, tool_count }: ServerView): boolean {
  return enabled && tool_count === null;
}

function hasFailed({ state }: ServerView): boolean {
  return state === 'failed' || state === 'backing_off' || state === 'breaker_open';
}

function show<Shown>(
  what: Listable,
  items: Shown[],
  row: (item: Shown) => string[],
  { json }: LsFlags,
): void {
  if (json) printJson(items);
  else if (items.length === 0) print(`no ${what}`);
  else print(listTable(items.map(row)));
}

async function listServers(
  url: string,
  project: string | undefined,
): Promise<{ servers: ServerView[]; projects: string[] }> {
  // Listing tools connects the servers; otherwise all would be idle.
  const client = await McpClient.connect(url, project);
  await client.list('tools/list', 'tools');
  await client.close();
  return serversOf(url, project);
}

async function serversOf(
  url: string,
  project: string | undefined,
): Promise<{ servers: ServerView[]; projects: string[] }> {
  const projects = project === undefined ? await projectNames(url) : [project];
  const lists = projects.map((name) =>
    callApi<{ servers: ServerView[] }>(url, 'GET', projectPath(name, 'servers')),
  );
  return { servers: (await Promise.all(lists)).flatMap(({ servers }) => servers), projects };
}

async function listOffer(
  url: string,
  what: Exclude<Listable, 'servers'>,
  project: string | undefined,
): Promise<{ items: Item[]; missing: ServerView[] }> {
  const client = await McpClient.connect(url, project);
  try {
    const items = await client.list(`${what}/list`, what);
    if (what === 'resources')
      items.push(...(await client.list('resources/templates/list', 'resourceTemplates')));
    return { items, missing: (await serversOf(url, project)).servers.filter(isMissing) };
  } finally {
    await client.close();
  }
}

export function serverRow(server: ServerView, now: Date): string[] {
  const { name, state, transport, tool_count } = server;
  const tools = tool_count === null ? '' : counted(tool_count, 'tool');
  return [name, stateText(state), transport, tools, serverNotes(server, now)];
}

function itemRow(what: Exclude<Listable, 'servers'>, item: Item): string[] {
  const source = String((item._meta as Item | undefined)?.[serverKey] ?? '');
  return what === 'resources'
    ? [String(item.uri ?? item.uriTemplate), source, summary(item.name)]
    : [String(item.name), source, summary(item.description)];
}
