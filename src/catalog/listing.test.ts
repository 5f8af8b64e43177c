import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeCursor, encodeCursor, type ListedItem, Listing } from './listing.ts';

interface Page {
  tools: { group: string; key: string }[];
  nextCursor?: string;
}

function item(group: string, key: string): ListedItem {
  return { group, key, bytes: Buffer.from(JSON.stringify({ group, key })) };
}

function itemsOf(groups: Record<string, readonly string[]>): ListedItem[] {
  return Object.entries(groups).flatMap(([group, keys]) => keys.map((key) => item(group, key)));
}

function page(items: readonly ListedItem[], pageSize: number, cursor?: string): Page {
  return JSON.parse(new Listing('tools', items, pageSize).page(cursor)!.toString()) as Page;
}

/** Collects all items page by page. `listingOf` may return another listing for each page. */
function walk(listingOf: (pages: number) => Listing): { keys: string[]; pages: number } {
  const keys: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const { tools, nextCursor } = JSON.parse(listingOf(pages).page(cursor)!.toString()) as Page;
    keys.push(...tools.map(({ key }) => key));
    cursor = nextCursor;
    pages++;
  } while (cursor !== undefined);
  return { keys, pages };
}

const uniqueItems = fc
  .uniqueArray(fc.tuple(fc.string(), fc.string({ unit: 'binary' })), {
    selector: (pair) => JSON.stringify(pair),
  })
  .map((pairs) => pairs.map(([group, key]) => item(group, key)));

describe('a list', () => {
  it('is the same for every page size', () => {
    fc.assert(
      fc.property(uniqueItems, fc.nat(12), (items, pageSize) => {
        const listing = new Listing('tools', items, pageSize);
        const { keys, pages } = walk(() => listing);
        expect(keys).toEqual(items.map(({ key }) => key));
        expect(pages).toBe(pageSize === 0 ? 1 : Math.max(1, Math.ceil(items.length / pageSize)));
        expect(listing.length).toBe(items.length);
      }),
    );
  });

  it('continues after a page when other groups are added, removed or changed in between', () => {
    const few = fc
      .array(fc.constantFrom('w', 'x', 'y', 'z'), { maxLength: 4 })
      .map((keys) => [...new Set(keys)]);
    fc.assert(
      fc.property(
        few,
        few,
        few,
        few,
        fc.integer({ min: 1, max: 3 }),
        (left, right, newLeft, newRight, pageSize) => {
          const own = ['1', '2', '3', '4', '5'];
          const before = new Listing('tools', itemsOf({ left, own, right }), pageSize);
          const after = new Listing('tools', itemsOf({ left: newLeft, own, right: newRight }), pageSize);
          const turn = Math.floor(left.length / pageSize) + 1;
          const { keys } = walk((pages) => (pages < turn ? before : after));
          expect(keys.filter((key) => own.includes(key))).toEqual(own);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('continues after the group of a removed item, and ends if that group is gone too', () => {
    const cursor = page(itemsOf({ a: ['1', '2', '3'], b: ['4'] }), 2).nextCursor!;
    expect(page(itemsOf({ a: ['1', '3'], b: ['4'] }), 2, cursor).tools).toEqual([{ group: 'b', key: '4' }]);
    expect(page(itemsOf({ b: ['4'] }), 2, cursor)).toEqual({ tools: [] });
  });

  it('that is empty has one page', () => {
    expect(page([], 0)).toEqual({ tools: [] });
    expect(page([], 5)).toEqual({ tools: [] });
  });

  it('returns the same bytes again, and caches only pages that it led to', () => {
    const listing = new Listing('tools', itemsOf({ a: ['1', '2', '3'] }), 2);
    expect(listing.page(undefined)).toBe(listing.page(undefined));
    expect(listing.page(encodeCursor({ group: 'a', key: '2' }))).toBe(
      listing.page(encodeCursor({ group: 'a', key: '2' })),
    );
    const offBeat = encodeCursor({ group: 'a', key: '1' });
    expect(listing.page(offBeat)).toEqual(listing.page(offBeat));
    expect(listing.page(offBeat)).not.toBe(listing.page(offBeat));
  });
});

describe('a cursor', () => {
  it('leads back to its position, whatever the name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (group, key) => {
        const cursor = encodeCursor({ group, key });
        expect(cursor).toMatch(/^[\w-]+$/);
        expect(decodeCursor(cursor)).toEqual({ group, key });
      }),
    );
    expect(decodeCursor(encodeCursor({ group: '\ud800', key: '\udc00' }))).toEqual({
      group: '\ud800',
      key: '\udc00',
    });
  });

  it('from elsewhere is rejected', () => {
    const listing = new Listing('tools', itemsOf({ a: ['1', '2'] }), 1);
    const ours = encodeCursor({ group: 'a', key: '1' });
    const encoded = (text: string) => Buffer.from(text).toString('base64url');
    for (const cursor of ['', '1', 'null', 'abc', `${ours}=`, `${ours}!`, ` ${ours}`, ours.slice(1)]) {
      expect(listing.page(cursor)).toBeUndefined();
    }
    for (const text of [
      'null',
      '"ab"',
      '[]',
      '["a"]',
      '["a",1]',
      '["a","1","x"]',
      '{}',
      '["a", "1"]',
      '["a","\\u0031"]',
    ]) {
      expect(listing.page(encoded(text))).toBeUndefined();
    }
    fc.assert(
      fc.property(fc.string(), (cursor) => {
        const position = decodeCursor(cursor);
        if (position !== undefined) expect(encodeCursor(position)).toBe(cursor);
      }),
    );
  });
});

it('a cursor longer than any of ours is rejected without decoding', () => {
  const key = 'x'.repeat(700_000);
  expect(decodeCursor(encodeCursor({ group: 'g', key }))).toEqual({ group: 'g', key });
  expect(decodeCursor(encodeCursor({ group: 'g', key: 'x'.repeat(800_000) }))).toBeUndefined();
});
