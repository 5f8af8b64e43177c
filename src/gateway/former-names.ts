import type { Catalog, Route } from '../catalog/catalog.ts';
import type { NamedKind } from '../catalog/contribution.ts';
import type { Message } from '../protocol/message.ts';
import { resolve, type Target } from './resolve.ts';

/** Milliseconds since 1970, monotonic while this process runs, and comparable after a restart. */
export function moment(): number {
  return performance.timeOrigin + performance.now();
}

interface FormerRoutes {
  former(kind: NamedKind, name: string, listedAt: number | undefined): Route | undefined;
}

/** Resolves a name that the client has seen, and that is now listed under another one. */
export function resolveFormer(
  scope: FormerRoutes,
  listedAt: number | undefined,
  message: Message,
): Target | undefined {
  const former = {
    tool: (name: string) => scope.former('tools', name, listedAt),
    prompt: (name: string) => scope.former('prompts', name, listedAt),
    resource: () => undefined,
  };
  return resolve(former, message);
}

interface Former {
  group: string;
  own: string;
  until: number;
}

export interface FormerName extends Former {
  kind: NamedKind;
  name: string;
}

type Names = Record<NamedKind, ReadonlyMap<string, Route>>;

const MAX_NAMES = 10_000;
const MAX_PERSISTED = 1_000;
const MAX_PERSISTED_CHARACTERS = 500;
const kinds = ['tools', 'prompts'] as const;

/** Names that clients have seen and that another server has now. They keep their meaning. */
export class FormerNames {
  private readonly former: Record<NamedKind, Map<string, Former>> = { tools: new Map(), prompts: new Map() };
  private shown: Names | undefined;
  isChanged = false;

  show({ names }: Catalog): void {
    this.shown = names;
  }

  replace({ names }: Catalog): void {
    if (this.shown === undefined || this.shown === names) return;
    const until = moment();
    for (const kind of kinds) {
      for (const [name, { group, own, server }] of this.shown[kind]) {
        if (server === undefined && !names[kind].has(name)) this.keep(kind, name, { group, own, until });
      }
    }
  }

  /** `listedAt` is when the client saw its first list, if it saw one. */
  find(kind: NamedKind, name: string, listedAt: number | undefined, catalog: Catalog): Route | undefined {
    const former = this.former[kind].get(name);
    if (former === undefined || (listedAt !== undefined && listedAt >= former.until)) return undefined;
    return catalog.routeTo(kind, name, former.group, former.own);
  }

  newest(): FormerName[] {
    const all = kinds.flatMap((kind) =>
      [...this.former[kind]].map(([name, former]) => ({ kind, name, ...former })),
    );
    const short = all.filter(
      ({ name, group, own }) => name.length + group.length + own.length < MAX_PERSISTED_CHARACTERS,
    );
    return short.toSorted((one, other) => other.until - one.until).slice(0, MAX_PERSISTED);
  }

  /** Newer names take precedence. */
  restore(names: readonly FormerName[]): void {
    for (const { kind, name, ...former } of names.toReversed())
      if (!this.former[kind].has(name)) this.former[kind].set(name, former);
  }

  private keep(kind: NamedKind, name: string, former: Former): void {
    const names = this.former[kind];
    // The name may have been listed again meanwhile: the last time counts.
    names.delete(name);
    names.set(name, former);
    this.isChanged = true;
    if (names.size > MAX_NAMES) names.delete(names.keys().next().value!);
  }
}
