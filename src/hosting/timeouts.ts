import { SwitchboardError } from '../errors.ts';

/** Until the signal is aborted, or for that time. Keeps nobody running. */
export function sleep(signal: AbortSignal, ms?: number): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = ms === undefined ? undefined : setTimeout(woken, ms);
    timer?.unref();
    function woken() {
      clearTimeout(timer);
      signal.removeEventListener('abort', woken);
      resolve();
    }
    signal.addEventListener('abort', woken);
  });
}

/** What the promise gives, or undefined as soon as the signal is aborted. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const waiting = new AbortController();
  // Whoever is not waited for any more may fail.
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

/** Fails where it takes longer. */
export async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  promise.catch(() => {});
  try {
    return await Promise.race([
      promise,
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(tooLong(ms)), ms);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/** Lets others wait for the next change of something. */
export class ChangeNotifier {
  private readonly waiting = new Set<() => void>();

  /** Settles with the next change, or after that time. */
  next(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(() => heard(), ms).unref();
      const heard = () => {
        clearTimeout(timer);
        this.waiting.delete(heard);
        resolve();
      };
      this.waiting.add(heard);
    });
  }

  notify(): void {
    for (const heard of [...this.waiting]) heard();
  }
}

function tooLong(ms: number): SwitchboardError {
  return new SwitchboardError('internal', `It was not done within ${ms / 1_000} s.`);
}
