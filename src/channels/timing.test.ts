import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs } from './timing.ts';

const rules = fc
  .tuple(fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 0, max: 10_000_000 }))
  .map(([firstMs, more]) => ({ firstMs, maxMs: firstMs + more }));
const failures = fc.integer({ min: 1, max: 10_000 });
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('the retry delay', () => {
  it('is an integer, at most the bound, and at least half of the first delay', () => {
    fc.assert(
      fc.property(rules, failures, random, (rule, count, chance) => {
        const pause = backoffMs(count, rule, chance);
        expect(Number.isSafeInteger(pause)).toBe(true);
        expect(pause).toBeLessThanOrEqual(rule.maxMs);
        expect(pause).toBeGreaterThanOrEqual(Math.floor(rule.firstMs / 2));
      }),
      { numRuns: 1_000 },
    );
  });

  it('without jitter starts with the first delay and doubles up to the bound', () => {
    fc.assert(
      fc.property(rules, fc.integer({ min: 1, max: 200 }), (rule, count) => {
        const pause = backoffMs(count, rule, 0);
        expect(backoffMs(1, rule, 0)).toBe(rule.firstMs);
        expect(backoffMs(count + 1, rule, 0)).toBe(Math.min(2 * pause, rule.maxMs));
      }),
    );
  });

  it('loses up to half to jitter, in proportion to it', () => {
    fc.assert(
      fc.property(rules, failures, random, random, (rule, count, one, other) => {
        const full = backoffMs(count, rule, 0);
        const [less, more] = [Math.min(one, other), Math.max(one, other)];
        expect(backoffMs(count, rule, less)).toBeGreaterThanOrEqual(backoffMs(count, rule, more));
        expect(backoffMs(count, rule, one)).toBeGreaterThanOrEqual(Math.floor(full / 2));
        expect(backoffMs(count, rule, one)).toBeLessThanOrEqual(full);
      }),
    );
  });
});
