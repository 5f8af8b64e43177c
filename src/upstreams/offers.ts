import { parseBounded } from '../protocol/bounded-parse.ts';
import { bytesAt } from '../protocol/message.ts';
import {
  type ParameterHeader,
  parameterHeaderLines,
  parameterHeaders,
} from '../protocol/parameter-headers.ts';
import { type Item, keyOf, type Offer, type OfferKind, offerKinds } from './lists.ts';
import type { ClientRequest } from './request.ts';

/** What one replica offers, with indexes for fast lookups. */
export class KnownOffer {
  readonly offer: Offer;
  private readonly keys: Record<OfferKind, Set<unknown>>;
  /** Filled when a tool is first called. */
  private readonly headers = new Map<string, readonly ParameterHeader[]>();

  constructor(offer: Offer) {
    this.offer = offer;
    this.keys = { tools: new Set(), prompts: new Set(), resources: new Set(), templates: new Set() };
    for (const kind of offerKinds) for (const item of offer[kind]) this.keys[kind].add(item[keyOf[kind]]);
  }

  has(kind: OfferKind, key: string): boolean {
    return this.keys[kind].has(key);
  }

  /** The HTTP header lines that repeat arguments of a tool. */
  parameterLines({ message, own }: ClientRequest): string {
    if (message.method !== 'tools/call' || message.params === undefined) return '';
    const declared = this.parameterHeaders(own);
    if (declared.length === 0) return '';
    const params = parseBounded(bytesAt(message.bytes, message.params).toString()) as { arguments?: unknown };
    return parameterHeaderLines(declared, params.arguments);
  }

  /** The arguments of a tool that are also sent as headers. */
  parameterHeaders(tool: string): readonly ParameterHeader[] {
    let headers = this.headers.get(tool);
    if (headers === undefined) {
      const declared = parameterHeaders(this.offer.tools.find(({ name }) => name === tool)?.inputSchema);
      headers = 'problem' in declared ? [] : declared;
      if (this.keys.tools.has(tool)) this.headers.set(tool, headers);
    }
    return headers;
  }
}

/** Merges offers; if items differ, the first one counts. */
export function union(offers: readonly Offer[]): Offer {
  if (offers.length === 1) return offers[0]!;
  const all: Offer = { tools: [], resources: [], templates: [], prompts: [] };
  for (const kind of offerKinds) {
    all[kind] = mergeLists(
      kind,
      offers.map((offer) => offer[kind]),
    );
  }
  return all;
}

export function mergeLists(kind: OfferKind, lists: readonly (readonly Item[])[]): Item[] {
  const seen = new Map<unknown, Item>();
  for (const list of lists) {
    for (const item of list) {
      const key = item[keyOf[kind]];
      if (!seen.has(key)) seen.set(key, item);
    }
  }
  return [...seen.values()];
}
