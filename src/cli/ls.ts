import type { ServerView } from '../app.ts';
import { callApi, projectPath } from './api.ts';
import { Client } from './client.ts';
import { print, printJson, summary, table } from './output.ts';
import { serverNotes, stateText } from './server-text.ts';
import { type TargetFlags, withSwitchboard } from './target.ts';
import type { ProjectView, ServerDetails } from './views.ts';
import type { Listable } from './words.ts';

export interface LsFlags extends TargetFlags {
  project?: string;
  json?: boolean;
}

type Item = Record<string, unknown>;

const serverKey = 'dev.switchboard/server';

/** Shows what there is. */
export async function ls(what: Listable, flags: LsFlags): Promise<void> {
  if (what === 'servers') {
    const { servers, projects } = await withSwitchboard(flags, (url) => listServers(url, flags.project));
    const now = new Date();
    const first = (server: ServerDetails) => (projects.length > 1 ? [server.project] : []);
    show(what, servers, (server) => [...first(server), ...serverRow(server, now)], flags);
  } else {
    const items = await withSwitchboard(flags, (url) => listOffer(url, what, flags.project));
    show(what, items, (item) => itemRow(what, item), flags);
  }
}

function show<Shown>(
  what: Listable,
  items: Shown[],
  row: (item: Shown) => string[],
  { json }: LsFlags,
): void {
  if (json) printJson(items);
  else if (items.length === 0) print(`no ${what}`);
  else print(table(items.map(row)));
}

async function listServers(
  url: string,
  project: string | undefined,
): Promise<{ servers: ServerDetails[]; projects: string[] }> {
  // A first list makes the servers known; without it every server would be idle.
  const client = await Client.connect(url, project);
  await client.list('tools/list', 'tools');
  await client.close();
  const projects = project === undefined ? await projectNames(url) : [project];
  const lists = projects.map((name) =>
    callApi<{ servers: ServerDetails[] }>(url, 'GET', projectPath(name, 'servers')),
  );
  return { servers: (await Promise.all(lists)).flatMap(({ servers }) => servers), projects };
}

async function projectNames(url: string): Promise<string[]> {
  const { projects } = await callApi<{ projects: ProjectView[] }>(url, 'GET', '/projects');
  return projects.map(({ name }) => name);
}

async function listOffer(
  url: string,
  what: Exclude<Listable, 'servers'>,
  project: string | undefined,
): Promise<Item[]> {
  const client = await Client.connect(url, project);
  try {
    const items = await client.list(`${what}/list`, what);
    if (what !== 'resources') return items;
    return [...items, ...(await client.list('resources/templates/list', 'resourceTemplates'))];
  } finally {
    await client.close();
  }
}

export function serverRow(server: ServerView, now: Date): string[] {
  const { name, state, transport, tool_count } = server;
  const tools = tool_count === null ? '' : `${tool_count} tools`;
  return [name, stateText(state), transport, tools, serverNotes(server, now)];
}

function itemRow(what: Exclude<Listable, 'servers'>, item: Item): string[] {
  const source = String((item._meta as Item | undefined)?.[serverKey] ?? '');
  return what === 'resources'
    ? [String(item.uri ?? item.uriTemplate), source, summary(item.name)]
    : [String(item.name), source, summary(item.description)];
}
