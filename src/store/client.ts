import type { Socket } from 'node:net';
import pg from 'pg';
import { SwitchboardError } from '../errors.ts';

export const CONNECT_TIMEOUT_MS = 5_000;
const GOODBYE_MS = 500;
const INT8 = 20;

/** `label` names the database in messages, without user and password. */
export interface DatabaseAddress {
  config: pg.ClientConfig;
  label: string;
}

export function addressOf(url: string): DatabaseAddress {
  const config = { connectionString: withUsualMeaning(url) };
  try {
    if (!/^(postgres|postgresql|socket):/.test(url)) throw new Error('it does not start with postgres://');
    const { host, port, database } = new pg.Client(config);
    if (!Number.isInteger(port)) throw new Error('its port is not a number');
    const place = host.startsWith('/') ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
    return { config, label: `${place}/${database}` };
  } catch (error) {
    throw new SwitchboardError(
      'invalid_config',
      `DATABASE_URL is not the URL of a PostgreSQL database: ${(error as Error).message}. It looks like postgres://user:password@host:5432/database`,
    );
  }
}

/** `pg` treats `require` as `verify-full`; libpq encrypts without verifying the certificate. */
function withUsualMeaning(url: string): string {
  const isOurs = /[?&]sslmode=(prefer|require|verify-ca)(&|$)/.test(url) && !url.includes('uselibpqcompat=');
  return isOurs ? `${url}&uselibpqcompat=true` : url;
}

export function clientConfig({ config }: DatabaseAddress): pg.ClientConfig {
  return {
    application_name: `switchboard ${process.pid}`,
    ...config,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: {
      // Counts and versions, which stay far below 2^53.
      getTypeParser: ((oid: number, format?: 'text') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  };
}

/** Not part of the pool, and not yet connected. */
export function newClient(address: DatabaseAddress): pg.Client {
  const client = new pg.Client(clientConfig(address));
  // Without a listener, an error would end the process.
  client.on('error', () => {});
  return client;
}

/** Does not wait long for a server that may be unreachable. */
export async function endClient(client: pg.Client): Promise<void> {
  const patience = setTimeout(() => cutClient(client), GOODBYE_MS);
  await client.end().catch(() => {});
  clearTimeout(patience);
}

export function cutClient(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}
