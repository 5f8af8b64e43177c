import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Offer, type OfferKind, offerKinds } from './lists.ts';
import { KnownOffer, union } from './offers.ts';

const keyOf = { tools: 'name', prompts: 'name', resources: 'uri', templates: 'uriTemplate' } as const;

/** Few names, so that they collide in the same server, in another, and in another kind. */
const name = fc.constantFrom('a', 'b', 'c', 'd', '__proto__', 'constructor');
const itemsOf = (kind: OfferKind) =>
  fc.array(
    fc.record({ key: name, title: fc.nat() }).map(({ key, title }) => ({ [keyOf[kind]]: key, title })),
    { maxLength: 5 },
  );
const offer: fc.Arbitrary<Offer> = fc.record({
  tools: itemsOf('tools'),
  prompts: itemsOf('prompts'),
  resources: itemsOf('resources'),
  templates: itemsOf('templates'),
});
const offers = fc.array(offer, { minLength: 2, maxLength: 4 });
const names = ['a', 'b', 'c', 'd', 'e', '__proto__', 'constructor', 'toString'];

describe('the offer of a replica', () => {
  it('is found by name, separately for each kind', () => {
    fc.assert(
      fc.property(offer, (offered) => {
        const known = new KnownOffer(offered);
        for (const kind of offerKinds) {
          const listed = offered[kind].map((item) => item[keyOf[kind]]);
          for (const one of names) expect(known.has(kind, one)).toBe(listed.includes(one));
        }
      }),
    );
  });
});

describe('the combined offer of several replicas', () => {
  it('is what at least one of them offers, as the first one describes it, in order of appearance', () => {
    fc.assert(
      fc.property(offers, (all) => {
        const together = union(all);
        const known = all.map((one) => new KnownOffer(one));
        for (const kind of offerKinds) {
          for (const one of names) {
            expect(new KnownOffer(together).has(kind, one)).toBe(known.some((each) => each.has(kind, one)));
          }
          const described = all.flatMap((each) => each[kind]);
          for (const item of together[kind]) {
            const key = item[keyOf[kind]];
            expect(item).toBe(described.find((candidate) => candidate[keyOf[kind]] === key));
          }
          const order = together[kind].map((item) => described.indexOf(item));
          expect(order).toEqual(order.toSorted((left, right) => left - right));
        }
      }),
    );
  });

  it('of one alone is its own', () => {
    fc.assert(
      fc.property(offer, (alone) => {
        expect(union([alone])).toBe(alone);
      }),
    );
  });

  it('contains everything once', () => {
    fc.assert(
      fc.property(offers, (all) => {
        const once = union([...all, ...all]);
        expect(union([once, ...all])).toEqual(once);
        for (const kind of offerKinds) {
          const keys = once[kind].map((item) => item[keyOf[kind]]);
          expect(new Set(keys).size).toBe(keys.length);
        }
      }),
    );
  });
});
