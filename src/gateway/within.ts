import { setTimeout as delay } from 'node:timers/promises';

/** Settles when all of them have, or after that time. */
export async function allWithin(events: readonly Promise<unknown>[], milliseconds: number): Promise<void> {
  const patience = new AbortController();
  const enough = delay(milliseconds, undefined, { signal: patience.signal }).catch(() => {});
  await Promise.race([Promise.all(events), enough]);
  patience.abort();
}
