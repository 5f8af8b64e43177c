import { type Item, type Offer, type OfferKind, offerKinds } from './discovery.ts';

/** By which key an item of each kind is known. */
const keyOf: Record<OfferKind, string> = {
  tools: 'name',
  prompts: 'name',
  resources: 'uri',
  templates: 'uriTemplate',
};

/** What one replica offers, and the names in it for quick questions. */
export class KnownOffer {
  readonly offer: Offer;
  private readonly keys: Record<OfferKind, Set<unknown>>;

  constructor(offer: Offer) {
    this.offer = offer;
    this.keys = { tools: new Set(), prompts: new Set(), resources: new Set(), templates: new Set() };
    for (const kind of offerKinds) for (const item of offer[kind]) this.keys[kind].add(item[keyOf[kind]]);
  }

  has(kind: OfferKind, key: string): boolean {
    return this.keys[kind].has(key);
  }
}

/** Everything that at least one of them offers; where they differ, the first one's word counts. */
export function union(offers: readonly Offer[]): Offer {
  if (offers.length === 1) return offers[0]!;
  const all: Offer = { tools: [], resources: [], templates: [], prompts: [] };
  for (const kind of offerKinds) all[kind] = unionOf(kind, offers);
  return all;
}

function unionOf(kind: OfferKind, offers: readonly Offer[]): Item[] {
  const seen = new Map<unknown, Item>();
  for (const offer of offers) {
    for (const item of offer[kind]) {
      const key = item[keyOf[kind]];
      if (!seen.has(key)) seen.set(key, item);
    }
  }
  return [...seen.values()];
}
