import type { ListName } from '../catalog/contribution.ts';
import type { Hints, Item, ItemKind } from '../identity/rules.ts';
import type { Group } from '../upstreams/group.ts';
import type { OfferKind } from '../upstreams/lists.ts';

const kinds: Record<ListName, ItemKind> = {
  tools: 'tool',
  prompts: 'prompt',
  resources: 'resource',
  templates: 'resource',
};
const keys: Record<ListName, string> = {
  tools: 'name',
  prompts: 'name',
  resources: 'uri',
  templates: 'uriTemplate',
};
const lists = Object.keys(keys) as ListName[];

/** What access rules decide about, by the name that the servers of a group give it. */
export function itemOf(group: Group, kind: OfferKind, own: string): Item {
  const hints = kind === 'tools' ? group.members.flatMap(({ offer }) => hintsIn(offer?.tools, own)) : [];
  return { kind: kinds[kind], servers: serversOf(group), name: own, hints };
}

/** The items of a group that are hidden, by their keys. */
export function hiddenItems(group: Group, isVisible: (item: Item) => boolean): Record<ListName, Set<string>> {
  const servers = serversOf(group);
  const hidden = lists.map((list) => {
    const hints = new Map<string, Hints[]>();
    for (const { offer } of group.members) {
      for (const item of offer?.[list] ?? []) {
        const key = item[keys[list]];
        if (typeof key !== 'string') continue;
        const known = hints.get(key);
        if (known === undefined) hints.set(key, [annotationsOf(item)]);
        else known.push(annotationsOf(item));
      }
    }
    const denied = [...hints].filter(
      ([name, given]) => !isVisible({ kind: kinds[list], servers, name, hints: given, isListed: true }),
    );
    return [list, new Set(denied.map(([name]) => name))];
  });
  return Object.fromEntries(hidden) as Record<ListName, Set<string>>;
}

export function isHidden(hidden: Record<ListName, Set<string>>, list: ListName, item: object): boolean {
  return hidden[list].has(String((item as Record<string, unknown>)[keys[list]]));
}

/** The group, and the servers in it. */
export function serversOf({ name, members }: Group): string[] {
  return [name, ...members.map((server) => server.name)];
}

function hintsIn(tools: readonly Record<string, unknown>[] | undefined, own: string): Hints[] {
  return (tools ?? []).filter(({ name }) => name === own).map(annotationsOf);
}

function annotationsOf({ annotations }: Record<string, unknown>): Hints {
  return typeof annotations === 'object' && annotations !== null ? annotations : {};
}
