import type { Item, SourcedItem } from './lazy-item.ts';

export type ListName = 'tools' | 'resources' | 'templates' | 'prompts';
/** Kinds of items that have names. */
export type NamedKind = 'tools' | 'prompts';

export interface ServerOffer {
  server: string;
  /** Represents the server in URIs. Unlike its name, unique in the catalog. */
  qualifier: string;
  prefix: string;
  tools: readonly Item[];
  resources: readonly Item[];
  templates: readonly Item[];
  prompts: readonly Item[];
}

/** What a group adds to a catalog: the merged items of its servers. */
export interface Contribution {
  /** Represents the group in URIs. Unlike its name, unique in the catalog. */
  qualifier: string;
  group: string;
  /** The owning project, if clients should see it. */
  project: string | undefined;
  prefix: string;
  servers: readonly ServerOffer[];
  /** Items that are not listed but keep their names reserved, so that listing them renames no other item. */
  reserved: Readonly<Record<NamedKind, readonly string[]>>;
}

interface SharedItem {
  key: string;
  /** The item as each server describes it; the first description is listed. */
  items: SourcedItem[];
}

/** Merges the items of a group by key. If a server lists a key twice, the first counts. */
export function sharedItems({ servers }: Contribution, kind: ListName, keyName: string): SharedItem[] {
  const shared = new Map<string, SharedItem>();
  for (const { server, [kind]: offered } of servers) {
    for (const item of offered) {
      const key = item[keyName];
      if (typeof key !== 'string') continue;
      const present = shared.get(key);
      if (present === undefined) shared.set(key, { key, items: [{ server, item }] });
      else if (present.items.at(-1)!.server !== server) present.items.push({ server, item });
    }
  }
  return [...shared.values()];
}

/** In a group, the qualified names of a server lead to that server only. */
export function aliases(contribution: Contribution, kind: NamedKind) {
  return contribution.servers
    .filter(({ server }) => server !== contribution.group)
    .flatMap((alias) =>
      sharedItems({ ...contribution, servers: [alias] }, kind, 'name').map((item) => ({
        contribution,
        ...item,
        alias,
      })),
    );
}
