import type { Socket } from 'node:net';
import pg from 'pg';
import type { Address } from './address.ts';

export const CONNECT_TIMEOUT_MS = 5_000;
const GOODBYE_MS = 500;
const INT8 = 20;

/** How every connection is made. */
export function clientConfig({ config }: Address): pg.ClientConfig {
  return {
    application_name: `switchboard ${process.pid}`,
    ...config,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: {
      // Counts and versions: none of them gets near 2^53.
      getTypeParser: ((oid: number, format?: 'text') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  };
}

/** One connection beside the pool, not yet made. */
export function newClient(address: Address): pg.Client {
  const client = new pg.Client(clientConfig(address));
  // Who cares for the loss of it listens too; without any listener the process would end.
  client.on('error', () => {});
  return client;
}

/** Says goodbye, but does not wait for long for somebody who may be gone. */
export async function endClient(client: pg.Client): Promise<void> {
  const patience = setTimeout(() => cutClient(client), GOODBYE_MS);
  await client.end().catch(() => {});
  clearTimeout(patience);
}

export function cutClient(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}
