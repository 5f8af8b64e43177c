import { isObject } from '../json.ts';
import type { ListedItem } from './listing.ts';
import { publicUri } from './uris.ts';

export type Item = Record<string, unknown>;

/** These keys of `_meta` say where a listed item comes from. */
const SERVER_META_KEY = 'dev.switchboard/server';
const GROUP_META_KEY = 'dev.switchboard/group';
/** The server's own name of the item, if it is listed under another. */
const NAME_META_KEY = 'dev.switchboard/name';
const PROJECT_META_KEY = 'dev.switchboard/project';

export interface SourcedItem {
  server: string;
  item: Item;
}

/** The group of an item. */
interface Owner {
  group: string;
  qualifier: string;
  project: string | undefined;
}

/** Serializes on demand: most catalogs are replaced before all their lists are requested. */
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
  const meta = isObject(item._meta) ? withPublicInterface(item._meta, qualifier) : {};
  const from = {
    [SERVER_META_KEY]: server,
    ...(group === server ? {} : { [GROUP_META_KEY]: group }),
    ...(project === undefined ? {} : { [PROJECT_META_KEY]: project }),
    ...(changed.name === undefined || changed.name === item.name ? {} : { [NAME_META_KEY]: item.name }),
  };
  return Buffer.from(JSON.stringify({ ...item, ...changed, _meta: { ...meta, ...from } }));
}

/** Makes the URI of a tool's user interface public, in both notations. */
function withPublicInterface(meta: Item, qualifier: string): Item {
  const { ui, [FLAT_UI_KEY]: flat } = meta;
  const nested = isObject(ui) ? ui.resourceUri : undefined;
  return {
    ...meta,
    ...(typeof nested === 'string'
      ? { ui: { ...(ui as Item), resourceUri: publicUri(qualifier, nested) } }
      : {}),
    ...(typeof flat === 'string' ? { [FLAT_UI_KEY]: publicUri(qualifier, flat) } : {}),
  };
}

const FLAT_UI_KEY = 'ui/resourceUri';
