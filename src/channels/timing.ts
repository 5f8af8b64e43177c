import { setTimeout as delay } from 'node:timers/promises';

export interface BackoffRule {
  firstMs: number;
  maxMs: number;
}

/**
 * The delay before the next attempt: doubles up to a limit, minus up to half of it at random, so that clients of one server
 * do not all return at once. `failures` counts from 1; `random` is in [0, 1).
 */
export function backoffMs(failures: number, { firstMs, maxMs }: BackoffRule, random: number): number {
  const full = Math.min(firstMs * 2 ** Math.min(failures - 1, 40), maxMs);
  return Math.round(full * (1 - random / 2));
}

/** Whether the promise resolves within this time. Rejects if the promise does. */
export async function settlesWithin(
  promise: Promise<unknown>,
  milliseconds: number,
  { ref = true } = {},
): Promise<boolean> {
  const timer = new AbortController();
  const timeout = delay(milliseconds, false, { signal: timer.signal, ref }).catch(() => false);
  try {
    return await Promise.race([promise.then(() => true), timeout]);
  } finally {
    timer.abort();
  }
}
