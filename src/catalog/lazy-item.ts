import type { ListedItem } from './listing.ts';
import { publicUri } from './uris.ts';

export type Item = Record<string, unknown>;

/** Under these keys of `_meta` every listed item says where it is from. */
const SERVER_META_KEY = 'dev.switchboard/server';
const GROUP_META_KEY = 'dev.switchboard/group';
/** What its server calls it, where it is listed under another name. */
const NAME_META_KEY = 'dev.switchboard/name';
const PROJECT_META_KEY = 'dev.switchboard/project';

/** An item, and the server that it is of. */
export interface SourcedItem {
  server: string;
  item: Item;
}

/** Who brings an item into a catalog: a group. */
interface Owner {
  group: string;
  qualifier: string;
  project: string | undefined;
}

/** Most catalogs are replaced before anybody asks for all of their lists. */
export class LazyItem implements ListedItem {
  readonly group: string;
  readonly key: string;
  private readonly source: SourcedItem;
  private readonly owner: Owner;
  private readonly changed: Item;

  constructor(group: string, key: string, source: SourcedItem, owner: Owner, changed: Item) {
    this.group = group;
    this.key = key;
    this.source = source;
    this.owner = owner;
    this.changed = changed;
  }

  get bytes(): Buffer {
    return itemBytes(this.source, this.owner, this.changed);
  }
}

function itemBytes(
  { server, item }: SourcedItem,
  { group, qualifier, project }: Owner,
  changed: Item,
): Buffer {
  const meta = isItem(item._meta) ? withPublicInterface(item._meta, qualifier) : {};
  const from = {
    [SERVER_META_KEY]: server,
    ...(group === server ? {} : { [GROUP_META_KEY]: group }),
    ...(project === undefined ? {} : { [PROJECT_META_KEY]: project }),
    ...(changed.name === undefined || changed.name === item.name ? {} : { [NAME_META_KEY]: item.name }),
  };
  return Buffer.from(JSON.stringify({ ...item, ...changed, _meta: { ...meta, ...from } }));
}

/** Where a tool names the resource that is its user interface, in both of the ways in which that is written. */
function withPublicInterface(meta: Item, qualifier: string): Item {
  const { ui, [FLAT_UI_KEY]: flat } = meta;
  const nested = isItem(ui) ? ui.resourceUri : undefined;
  return {
    ...meta,
    ...(typeof nested === 'string'
      ? { ui: { ...(ui as Item), resourceUri: publicUri(qualifier, nested) } }
      : {}),
    ...(typeof flat === 'string' ? { [FLAT_UI_KEY]: publicUri(qualifier, flat) } : {}),
  };
}

const FLAT_UI_KEY = 'ui/resourceUri';

function isItem(value: unknown): value is Item {
  return typeof value === 'object' && value !== null;
}
