import type { ServerFacts } from './handshake.ts';
import type { Upstream } from './upstream.ts';

/** A tool, resource, template or prompt exactly as its server describes it. */
export type Item = Record<string, unknown>;

/** What one server offers. */
export interface Offer {
  tools: Item[];
  resources: Item[];
  templates: Item[];
  prompts: Item[];
}

export type OfferKind = keyof Offer;

interface ListMethod {
  method: string;
  key: string;
  capability: string;
}

const listMethods: Record<OfferKind, ListMethod> = {
  tools: { method: 'tools/list', key: 'tools', capability: 'tools' },
  resources: { method: 'resources/list', key: 'resources', capability: 'resources' },
  templates: { method: 'resources/templates/list', key: 'resourceTemplates', capability: 'resources' },
  prompts: { method: 'prompts/list', key: 'prompts', capability: 'prompts' },
};

export const offerKinds = Object.keys(listMethods) as OfferKind[];

/** A server that pages for ever must not fill our memory. */
const MAX_ITEMS = 100_000;

/** Reads the whole list of one kind, page by page, within the time. A kind that the server does not offer is empty. */
export async function discover(
  { upstream, facts }: { upstream: Upstream; facts: ServerFacts },
  kind: OfferKind,
  timeoutMs: number,
): Promise<Item[]> {
  const { method, key, capability } = listMethods[kind];
  if (facts.capabilities[capability] === undefined) return [];
  const items: Item[] = [];
  let cursor: unknown;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const left = Math.max(1, Math.ceil(deadline - performance.now()));
    const result = (await upstream.request(method, cursor === undefined ? {} : { cursor }, left)) as
      | Item
      | undefined;
    const listed = result?.[key];
    if (Array.isArray(listed)) for (const item of listed) if (isItem(item)) items.push(item);
    const next = result?.nextCursor;
    if (typeof next !== 'string' || next === cursor) return items;
    if (items.length > MAX_ITEMS) throw new Error(`the list of ${kind} has more than ${MAX_ITEMS} items`);
    cursor = next;
  }
}

function isItem(item: unknown): item is Item {
  return typeof item === 'object' && item !== null;
}
