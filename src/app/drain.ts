import { setTimeout as delay } from 'node:timers/promises';

/** What a stop waits for. */
export interface Waiting {
  /** How many calls; 0 where it waits for servers to end. */
  calls: number;
  /** The servers that it is about, each once. Calls that are not with a server yet have none. */
  servers: string[];
  /** For how long at the most. */
  limitMs: number;
}

/** Something that calls go through. */
export interface Drainable {
  /** Takes no more calls. Settles when none is under way any more. */
  drain(): Promise<void>;
  /** The servers of the calls under way, one name for each. */
  underWay(): (string | undefined)[];
}

/** Lets calls end that are under way, for so long. Gives those that have not. */
export async function drain(
  parts: readonly Drainable[],
  limitMs: number,
  told: (waiting: Waiting) => void,
): Promise<Waiting> {
  const drained = Promise.all(parts.map((part) => part.drain()));
  const waiting = waitingFor(parts, limitMs);
  if (waiting.calls === 0 || limitMs === 0) return waiting;
  told(waiting);
  const over = new AbortController();
  await Promise.race([drained, delay(limitMs, undefined, over).catch(() => {})]);
  over.abort();
  return waitingFor(parts, limitMs);
}

/** Tells of servers that have not ended after a while. Gives the way to tell no more. */
export function watchEnding(
  ending: () => string[],
  afterMs: number,
  limitMs: number,
  told: (waiting: Waiting) => void,
): () => void {
  const timer = setTimeout(() => {
    const servers = [...new Set(ending())];
    if (servers.length > 0) told({ calls: 0, servers, limitMs });
  }, afterMs);
  return () => clearTimeout(timer);
}

/** What became of calls that have not ended in time. */
export function cutOff({ calls, servers, limitMs }: Waiting): string {
  const names = servers.length === 0 ? '' : ` (${servers.join(', ')})`;
  return `${calls === 1 ? '1 call' : `${calls} calls`}${names} did not end within ${limitMs} ms (setting shutdownGraceMs), and failed.`;
}

function waitingFor(parts: readonly Drainable[], limitMs: number): Waiting {
  const underWay = parts.flatMap((part) => part.underWay());
  const servers = [...new Set(underWay.filter((name) => name !== undefined))];
  return { calls: underWay.length, servers, limitMs };
}
