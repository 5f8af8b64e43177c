import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Candidate, choose } from './group.ts';

interface Labelled extends Candidate {
  lack: number;
}

const candidate: fc.Arbitrary<Labelled> = fc.record({
  isLive: fc.boolean(),
  isEjected: fc.boolean(),
  hasRoom: fc.boolean(),
  load: fc.nat({ max: 5 }),
  lack: fc.constantFrom(0, 1 / 3, 2 / 3),
});
const candidates = fc.array(candidate, { minLength: 1, maxLength: 8 });
const turn = fc.nat();
const lackOf = ({ lack }: Labelled) => lack;
const preference = fc.constantFrom(undefined, lackOf);

const well: Candidate = { isLive: true, isEjected: false, hasRoom: true, load: 0 };

/** Asserts that a better replica is chosen if any candidate is better. */
function prevails(all: readonly Labelled[], chosen: Labelled, isBetter: (one: Labelled) => boolean): void {
  expect(isBetter(chosen)).toBe(all.some(isBetter));
}

describe('the replica for a call', () => {
  it('is one of the candidates, and never an ejected one if another exists', () => {
    fc.assert(
      fc.property(candidates, turn, preference, (all, now, prefers) => {
        const chosen = choose(all, now, prefers);
        expect(all).toContain(chosen);
        prevails(all, chosen, ({ isEjected }) => !isEjected);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is one that the client prefers, if one of them is healthy', () => {
    fc.assert(
      fc.property(candidates, turn, (all, now) => {
        const chosen = choose(all, now, lackOf);
        prevails(all, chosen, (one) => !one.isEjected && one.isLive && one.lack === 0);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is a connected one among equally healthy ones, and then a preferred one', () => {
    fc.assert(
      fc.property(candidates, turn, preference, (all, now, prefers) => {
        const chosen = choose(all, now, prefers);
        const asWell = all.filter(({ isEjected }) => isEjected === chosen.isEjected);
        prevails(asWell, chosen, ({ isLive }) => isLive);
        const asNear = asWell.filter(({ isLive }) => isLive === chosen.isLive);
        const least = Math.min(...asNear.map(lackOf));
        if (prefers !== undefined) expect(chosen.lack).toBe(least);
        const asWanted = asNear.filter((one) => prefers === undefined || prefers(one) === prefers(chosen));
        prevails(asWanted, chosen, ({ hasRoom }) => hasRoom);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is each of several equals in exact rotation', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.array(candidate.map((one) => ({ ...one, isEjected: true }))),
        turn,
        fc.integer({ min: 1, max: 50 }),
        (count, ejected, first, rounds) => {
          const equals = Array.from({ length: count }, () => ({ ...well, lack: 0 }));
          const all = [...ejected, ...equals];
          const taken = new Map<Labelled, number>();
          for (let now = first; now < first + rounds * count; now++) {
            const chosen = choose(all, now, lackOf);
            taken.set(chosen, (taken.get(chosen) ?? 0) + 1);
          }
          expect(equals.map((one) => taken.get(one))).toEqual(equals.map(() => rounds));
        },
      ),
    );
  });

  it('is the least loaded one if none has free slots', () => {
    const full = candidates.map((all) => all.map((one) => ({ ...well, load: one.load, hasRoom: false })));
    fc.assert(
      fc.property(full, turn, (all, now) => {
        const chosen = choose(all, now, undefined);
        expect(chosen.load).toBe(Math.min(...all.map(({ load }) => load)));
      }),
    );
  });

  it('is deterministic', () => {
    fc.assert(
      fc.property(candidates, turn, preference, (all, now, prefers) => {
        const frozen = Object.freeze(all.map((one) => Object.freeze({ ...one })));
        expect(choose(frozen, now, prefers)).toBe(choose(frozen, now, prefers));
      }),
    );
  });
});
