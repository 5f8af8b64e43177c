import type { Contribution, ListName, ServerOffer } from './contribution.ts';

const kinds: readonly ListName[] = ['tools', 'prompts', 'resources', 'templates'];

/**
 * Limits the items of a catalog, and describes what is left out. A catalog is built in one step, so that no client sees
 * a partial one. Earlier contributions have priority, and tools come before everything else.
 */
export function cut(
  contributions: readonly Contribution[],
  maxItems: number,
): { taken: readonly Contribution[]; leftOut: string[] } {
  const offers = contributions.flatMap(({ servers }) => servers);
  const total = offers.reduce((sum, offer) => sum + sizeOf(offer), 0);
  if (total <= maxItems) return { taken: contributions, leftOut: [] };
  let left = maxItems;
  const leftOut: string[] = [];
  const taken = new Map(offers.map((offer) => [offer, { ...offer }]));
  for (const kind of kinds) {
    for (const [offer, part] of taken) {
      const { length } = offer[kind];
      if (length > left) {
        part[kind] = offer[kind].slice(0, left);
        leftOut.push(
          `${length - left} ${kind} of server "${offer.server}" are left out: all servers together offer ${total} items, over the limit of ${maxItems} (setting maxCatalogItems)`,
        );
      }
      left -= part[kind].length;
    }
  }
  return {
    taken: contributions.map((contribution) => ({
      ...contribution,
      servers: contribution.servers.map((offer) => taken.get(offer)!),
    })),
    leftOut,
  };
}

function sizeOf(offer: ServerOffer): number {
  return kinds.reduce((sum, kind) => sum + offer[kind].length, 0);
}
