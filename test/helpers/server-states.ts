import type { ServerView } from '../../src/api/views.ts';
import { exchange } from './raw-http.ts';
import type { RunningSwitchboard } from './switchboard.ts';

export async function serverOf({ baseUrl }: RunningSwitchboard, name: string): Promise<ServerView> {
  const { text } = await exchange(`${baseUrl}/api/v1/projects/default/servers/${name}`, { method: 'GET' });
  return JSON.parse(text) as ServerView;
}

/** Polls, because the number of queued calls has no event. */
export async function serverOnce(
  switchboard: RunningSwitchboard,
  name: string,
  fits: (server: ServerView) => boolean,
): Promise<ServerView> {
  for (;;) {
    const server = await serverOf(switchboard, name);
    if (fits(server)) return server;
  }
}

/** As returned by the tools of the echo fixtures. */
export interface Answerer {
  name: string;
  pid: number;
}

/** Resolves when this many replicas of each server have been ready once. */
export async function allReady(
  switchboard: RunningSwitchboard,
  servers: Record<string, number>,
): Promise<void> {
  await Promise.all(
    Object.entries(servers).flatMap(([name, count]) =>
      Array.from({ length: count }, (_, index) =>
        switchboard.event(
          (event) =>
            event.name === name && event.state === 'ready' && (count === 1 || event.replica === index + 1),
        ),
      ),
    ),
  );
}

/** The next time that a server or one of its replicas enters this state. */
export function nextState(
  { events, event }: RunningSwitchboard,
  name: string,
  state: ServerView['state'],
): Promise<Record<string, unknown>> {
  const past = new Set(events);
  return event(
    (candidate) =>
      candidate.name === name &&
      candidate.state === state &&
      candidate.from !== state &&
      !past.has(candidate),
  );
}

export function tally<Value>(values: Iterable<Value>): Map<Value, number> {
  const counts = new Map<Value, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
