import { setTimeout as delay } from 'node:timers/promises';

/** The longest delay of a timer, 24.8 days. */
const MAX_TIMER_MS = 2 ** 31 - 1;

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

/** Resolves after the delay, or when the signal is aborted. Does not keep the process alive. */
export async function sleep(signal: AbortSignal, ms = MAX_TIMER_MS): Promise<void> {
  await delay(Math.max(0, ms), undefined, { signal, ref: false }).catch(() => {});
}

/** Settles as the promise does, but rejects with the signal's reason as soon as it is aborted. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
