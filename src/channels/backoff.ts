export interface BackoffRule {
  firstMs: number;
  maxMs: number;
}

/**
 * How long to wait before the next attempt: twice as long each time up to a bound, less a random part of up to half,
 * so that many who lost the same thing at once do not come back at once. `failures` counts from 1; `random` is in [0, 1).
 */
export function backoffMs(failures: number, { firstMs, maxMs }: BackoffRule, random: number): number {
  const full = Math.min(firstMs * 2 ** Math.min(failures - 1, 40), maxMs);
  return Math.round(full * (1 - random / 2));
}
