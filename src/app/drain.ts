import { setTimeout as delay } from 'node:timers/promises';

/** What a stop waits for. */
export interface Waiting {
  /** 0 while it waits for servers to exit. */
  calls: number;
  /** Without duplicates. Calls that have no server yet are not in it. */
  servers: string[];
  limitMs: number;
}

export interface Drainable {
  /** Rejects new calls. Resolves when none is in flight. */
  drain(): Promise<void>;
  /** The server of each call in flight; undefined if it has none yet. */
  underWay(): (string | undefined)[];
}

/** Waits for the calls in flight, up to the limit. Returns the calls that are left. */
export async function drain(
  parts: readonly Drainable[],
  limitMs: number,
  report: (waiting: Waiting) => void,
): Promise<Waiting> {
  const drained = Promise.all(parts.map((part) => part.drain()));
  const waiting = waitingFor(parts, limitMs);
  if (waiting.calls === 0 || limitMs === 0) return waiting;
  report(waiting);
  const over = new AbortController();
  await Promise.race([drained, delay(limitMs, undefined, over).catch(() => {})]);
  over.abort();
  return waitingFor(parts, limitMs);
}

/** Reports servers that have not exited after a while. Returns a function that cancels the report. */
export function watchEnding(
  ending: () => string[],
  afterMs: number,
  limitMs: number,
  report: (waiting: Waiting) => void,
): () => void {
  const timer = setTimeout(() => {
    const servers = [...new Set(ending())];
    if (servers.length > 0) report({ calls: 0, servers, limitMs });
  }, afterMs);
  return () => clearTimeout(timer);
}

export function cutOff({ calls, servers, limitMs }: Waiting): string {
  const names = servers.length === 0 ? '' : ` (${servers.join(', ')})`;
  return `${calls === 1 ? '1 call' : `${calls} calls`}${names} did not end within ${limitMs} ms (setting shutdownGraceMs), and failed.`;
}

function waitingFor(parts: readonly Drainable[], limitMs: number): Waiting {
  const underWay = parts.flatMap((part) => part.underWay());
  const servers = [...new Set(underWay.filter((name) => name !== undefined))];
  return { calls: underWay.length, servers, limitMs };
}

/** Calls `idle` when there has been no client for `exitWhenIdleMs`. */
export function watchIdleness(
  clients: { readonly count: number },
  exitWhenIdleMs: number | undefined,
  idle: () => void,
): NodeJS.Timeout | undefined {
  if (exitWhenIdleMs === undefined) return undefined;
  let idleSince = Date.now();
  const check = () => {
    if (clients.count > 0) idleSince = Date.now();
    else if (Date.now() - idleSince >= exitWhenIdleMs) idle();
  };
  const timer = setInterval(check, Math.min(1_000, exitWhenIdleMs));
  timer.unref();
  return timer;
}
