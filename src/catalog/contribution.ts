import type { Item, SourcedItem } from './lazy-item.ts';

export type ListName = 'tools' | 'resources' | 'templates' | 'prompts';
/** Kinds of things that are known by a name. */
export type NamedKind = 'tools' | 'prompts';

/** What one server offers. */
export interface ServerOffer {
  server: string;
  /** What stands for it in URIs. Unlike its name it is unique in the catalog. */
  qualifier: string;
  prefix: string;
  tools: readonly Item[];
  resources: readonly Item[];
  templates: readonly Item[];
  prompts: readonly Item[];
}

/** What a group brings into a catalog: what its servers offer, as one. */
export interface Contribution {
  /** What stands for the group in URIs. Unlike its name it is unique in the catalog. */
  qualifier: string;
  group: string;
  /** Whose it is, where that is worth telling. */
  project: string | undefined;
  prefix: string;
  servers: readonly ServerOffer[];
  /** Tools that are not listed, but keep their names: others are called the same whether these are switched on or off. */
  switchedOff: readonly string[];
}

interface SharedItem {
  key: string;
  /** The same thing as each server that offers it describes it; the first one's word is listed. */
  items: SourcedItem[];
}

/** What a group offers, each key once; a server that lists something twice means the first. */
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

/** In a group, a server's own qualified names lead to that server alone. */
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
