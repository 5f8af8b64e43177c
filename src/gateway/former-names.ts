import type { Catalog, NamedKind, Route } from '../catalog/catalog.ts';

/** What a name stood for until then. */
interface Former {
  group: string;
  own: string;
  until: number;
}

type Names = Record<NamedKind, ReadonlyMap<string, Route>>;

/** Names that come and go would be kept without end. */
const MAX_NAMES = 10_000;

/**
 * Names that clients were shown and that are listed no longer, because another server brought the same name. They go on
 * meaning what they meant.
 */
export class FormerNames {
  private readonly former: Record<NamedKind, Map<string, Former>> = { tools: new Map(), prompts: new Map() };
  /** Of the lists that a client saw last. */
  private shown: Names | undefined;

  /** A client sees these lists. */
  show({ names }: Catalog): void {
    this.shown = names;
  }

  /** There are other lists from now on. */
  replace({ names }: Catalog): void {
    if (this.shown === undefined || this.shown === names) return;
    const until = performance.now();
    for (const kind of ['tools', 'prompts'] as const) {
      for (const [name, { group, own, server }] of this.shown[kind]) {
        if (server === undefined && !names[kind].has(name)) this.keep(kind, name, { group, own, until });
      }
    }
  }

  /** Where a name led that is listed no longer, for a client that saw its first list then; undefined: it saw none. */
  find(kind: NamedKind, name: string, listedAt: number | undefined, catalog: Catalog): Route | undefined {
    const former = this.former[kind].get(name);
    if (former === undefined || (listedAt !== undefined && listedAt >= former.until)) return undefined;
    return catalog.routeTo(kind, name, former.group, former.own);
  }

  private keep(kind: NamedKind, name: string, former: Former): void {
    const names = this.former[kind];
    // It may have been listed again since it was noted, and shown to others: the last time counts.
    names.delete(name);
    names.set(name, former);
    if (names.size > MAX_NAMES) names.delete(names.keys().next().value!);
  }
}
