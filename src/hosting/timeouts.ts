import { SwitchboardError } from '../errors.ts';

/** Resolves after that time, or when the signal is aborted. Does not keep the process alive. */
export function sleep(signal: AbortSignal, ms?: number): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = ms === undefined ? undefined : setTimeout(wake, ms);
    timer?.unref();
    function wake() {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      resolve();
    }
    signal.addEventListener('abort', wake);
  });
}

/** The result of the promise, or undefined as soon as the signal is aborted. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const waiting = new AbortController();
  // It may reject after the abort.
  promise.catch(() => {});
  try {
    return await Promise.race([
      promise,
      sleep(AbortSignal.any([signal, waiting.signal])).then(() => undefined),
    ]);
  } finally {
    waiting.abort();
  }
}

/** Rejects after the timeout. */
export async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  promise.catch(() => {});
  try {
    return await Promise.race([
      promise,
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(timedOut(ms)), ms);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

function timedOut(ms: number): SwitchboardError {
  return new SwitchboardError('internal', `It timed out after ${ms / 1_000} s.`);
}
