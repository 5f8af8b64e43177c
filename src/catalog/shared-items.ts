import type { Contribution, ListName, NamedKind } from './contribution.ts';
import type { SourcedItem } from './lazy-item.ts';

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
