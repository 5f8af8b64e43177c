import { Client, getApi } from './client.ts';
import { print, printJson, summary, table } from './output.ts';
import { type TargetFlags, withSwitchboard } from './target.ts';
import type { Listable } from './words.ts';

export interface LsFlags extends TargetFlags {
  json?: boolean;
}

type Item = Record<string, unknown>;

const serverKey = 'dev.switchboard/server';

/** Shows what there is. */
export async function ls(what: Listable, flags: LsFlags): Promise<void> {
  const items = await withSwitchboard(flags, (url) =>
    what === 'servers' ? listServers(url) : listOffer(url, what),
  );
  if (flags.json) printJson(items);
  else if (items.length === 0) print(`no ${what}`);
  else print(table(items.map((item) => row(what, item))));
}

async function listServers(url: string): Promise<Item[]> {
  // A first list makes the servers known; without it every server would be idle.
  const client = await Client.connect(url);
  await client.list('tools/list', 'tools');
  await client.close();
  return (await getApi(url, '/projects/default/servers')).servers as Item[];
}

async function listOffer(url: string, what: Exclude<Listable, 'servers'>): Promise<Item[]> {
  const client = await Client.connect(url);
  try {
    const items = await client.list(`${what}/list`, what);
    if (what !== 'resources') return items;
    return [...items, ...(await client.list('resources/templates/list', 'resourceTemplates'))];
  } finally {
    await client.close();
  }
}

function row(what: Listable, item: Item): string[] {
  const source = String((item._meta as Item | undefined)?.[serverKey] ?? '');
  switch (what) {
    case 'servers': {
      const counts = item.tool_count === null ? '' : `${item.tool_count} tools`;
      return [
        String(item.name),
        String(item.state),
        String(item.transport),
        counts,
        String(item.error ?? ''),
      ];
    }
    case 'resources':
      return [String(item.uri ?? item.uriTemplate), source, summary(item.name)];
    default:
      return [String(item.name), source, summary(item.description)];
  }
}
