/** Keeps a number of calls in flight for a short time and counts the responses. */
import type { Client, Exchange } from './client.ts';
import { HttpConnection } from './http-connection.ts';

const STUCK_AFTER_MS = 60_000;

export interface Load {
  client: Client;
  exchange: Exchange;
  concurrency: number;
}

export interface LoadResult {
  calls: number;
  elapsedMs: number;
}

/**
 * Opens the connections and sends one call over each before `onReady`, so that only calls over warm
 * connections are measured. `onDone` runs before the connections are closed.
 */
export async function applyLoad(
  load: Load,
  durationMs: number,
  onReady: () => void,
  onDone: () => Promise<void>,
): Promise<LoadResult> {
  const connections = await Promise.all(
    Array.from({ length: load.concurrency }, () => HttpConnection.open(load.client.target.port)),
  );
  try {
    await untilAnswered(load, connections, 0);
    onReady();
    const result = await untilAnswered(load, connections, durationMs);
    await onDone();
    return result;
  } finally {
    for (const connection of connections) connection.destroy();
  }
}

/** Repeats calls on each connection until the time is up (at least one each), then waits for those in flight. */
function untilAnswered(load: Load, connections: HttpConnection[], durationMs: number): Promise<LoadResult> {
  const { client, exchange } = load;
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    let calls = 0;
    let busy = connections.length;
    const stuck = setTimeout(
      () =>
        reject(new Error(`${client.target.variant}: ${busy} calls got no answer in ${STUCK_AFTER_MS} ms`)),
      STUCK_AFTER_MS,
    );
    const fail = (error: unknown) => {
      clearTimeout(stuck);
      reject(error instanceof Error ? error : new Error(String(error)));
    };

    const sendNext = (connection: HttpConnection) => {
      const id = client.nextId();
      connection.send(
        exchange.request(id),
        false,
        (answer) => {
          try {
            exchange.check(answer, id);
          } catch (error) {
            fail(error);
            return;
          }
          calls++;
          const elapsedMs = performance.now() - startedAt;
          if (elapsedMs < durationMs) {
            sendNext(connection);
          } else if (--busy === 0) {
            clearTimeout(stuck);
            resolve({ calls, elapsedMs });
          }
        },
        (error) => fail(new Error(`${client.target.variant}: ${error.message}`)),
      );
    };
    for (const connection of connections) sendNext(connection);
  });
}
